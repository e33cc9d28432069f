/** Checks a prompt against the model's catalog row: output limit, tools, media and reasoning. */
import type { UnsupportedParameters } from "../protocols/canonical/unsupported_parameters.ts";
import { PARAMETER_NAMES } from "../protocols/canonical/parameter_names.ts";
import { addressesIn, modalityOf } from "../protocols/canonical/media.ts";
import type { ContentBlock, Prompt, Protocol, Reasoning } from "../protocols/canonical/types.ts";
import type { Model } from "../catalog/model.ts";
import { GatewayError } from "../errors.ts";
import { sendContent } from "../protocols/extras.ts";
import { withSettings } from "../protocols/plain_contents.ts";
import { BlockedAddress, createAddressGuard, literalAddress } from "../upstreams/address_guard.ts";

/**
 * Checks that the model can do what the prompt asks for. For a model without reasoning, the reasoning settings are
 * removed and added to `dropped`.
 * @param options `privateNetworks`: those that media addresses may be in, the same as for upstreams
 * @returns the prompt for the model
 * @throws {GatewayError} `invalid`
 */
export function checkModelRules(
  prompt: Prompt,
  model: Model,
  dropped: UnsupportedParameters,
  { privateNetworks }: { privateNetworks?: readonly string[] | undefined } = {},
): Prompt {
  const { maxTokens, plain, protocol, reasoning } = prompt;
  if (maxTokens !== undefined && maxTokens > model.top_provider.max_completion_tokens) {
    throw tooManyTokens(prompt, model, dropped);
  }
  const tools = plain === undefined ? prompt.tools.length : plain.tools;
  if (tools > 0 && !model.supported_parameters.includes("tools")) {
    throw new GatewayError("invalid", `Cannot use tools with ${model.id}: it does not support them`, {
      param: "tools",
    });
  }
  const facts = { protocol, model, vendorState: prompt.vendorState === true, privateNetworks };
  // Plain messages have no media but images in base64.
  if (plain?.images !== undefined) checkModality("image", facts);
  if (plain === undefined) { for (const { blocks } of prompt.messages) checkBlocks(blocks, facts); }
  if (reasoning === undefined) return prompt;
  if (model.reasoning !== undefined) {
    checkReasoning(reasoning, { prompt, model, ...model.reasoning });
    return prompt;
  }
  for (const name of reasoningParameters(reasoning, protocol)) dropped.add(name);
  return withSettings(prompt, { reasoning: undefined });
}

function tooManyTokens(
  { maxTokens, protocol }: Prompt,
  { id, top_provider }: Model,
  names: UnsupportedParameters,
): GatewayError {
  const param = names.nameOf(PARAMETER_NAMES[protocol].maxTokens);
  const maximum = top_provider.max_completion_tokens;
  return new GatewayError(
    "invalid",
    `${param}: ${maxTokens} > ${maximum}, which is the maximum allowed number of output tokens for ${id}`,
    { param, rule: `at most ${maximum} output tokens for ${id}` },
  );
}

/** The facts that the checks of media need. */
interface MediaFacts {
  protocol: Protocol;
  model: Model;
  vendorState: boolean;
  privateNetworks: readonly string[] | undefined;
}

function checkBlocks(blocks: readonly ContentBlock[], facts: MediaFacts): void {
  for (const block of blocks) {
    if (block.type === "tool_result") checkBlocks(block.blocks, facts);
    if (block.type === "vendor_specific") {
      for (const { name, url } of addressesIn(block.value)) {
        checkAddress(url, facts);
        if (name === "source") checkModality("image", facts);
      }
    }
    if (block.type !== "media") continue;
    if (block.media.kind === "url") checkAddress(block.media.url, facts);
    checkModality(modalityOf(block.media, block.name), facts);
  }
}

function checkAddress(url: string, facts: MediaFacts): void {
  checkHost(url, facts);
  if (!facts.vendorState) checkUrl(url, facts);
}

/** Longest address of media, in characters. Those of 30 MB blocked the event loop for seconds. */
const MAX_ADDRESS_LENGTH = 65_536;

/** Refuses literal addresses in private networks: a self-hosted upstream would open them from inside the network. */
function checkHost(url: string, { protocol, privateNetworks }: MediaFacts): void {
  if (url.length > MAX_ADDRESS_LENGTH) {
    throw new GatewayError("invalid", `Cannot use this address: it has more than ${MAX_ADDRESS_LENGTH} characters`, {
      param: PARAMETER_NAMES[protocol].messages,
    });
  }
  const address = literalAddress(url.trim());
  if (address === undefined) return;
  try {
    createAddressGuard(privateNetworks)(address, address);
  } catch (cause) {
    if (!(cause instanceof BlockedAddress)) throw cause;
    throw new GatewayError("invalid", "Cannot use this address: media must not be fetched from its network", {
      param: PARAMETER_NAMES[protocol].messages,
      cause,
    });
  }
}

/** Matches paths of files that Google stores. */
const GOOGLE_FILE_PATH = /\/files?\//i;

function checkUrl(url: string, { protocol }: MediaFacts): void {
  if (isPublic(url.trim())) return;
  throw new GatewayError(
    "invalid",
    `Cannot use this address: unless it is a public http(s) URL, ${sendContent("the content")}`,
    { param: PARAMETER_NAMES[protocol].messages },
  );
}

/**
 * Returns false if a vendor might read the address with the operator's own credentials, as Google does with its files
 * and buckets. Addresses with control characters or backslashes are refused, because parsers treat them differently.
 * Paths are decoded twice, because some servers do so.
 */
function isPublic(url: string): boolean {
  // deno-lint-ignore no-control-regex
  if (!/^https?:\/\/[^/]/i.test(url) || /[\x00-\x1f\x7f\\]/.test(url) || !URL.canParse(url)) return false;
  const { hostname, pathname } = new URL(url);
  if (!/(?:^|\.)googleapis\.com\.*$/.test(hostname)) return true;
  try {
    const once = decodeURIComponent(pathname);
    return ![pathname, once, decodeURIComponent(once)].some((path) => GOOGLE_FILE_PATH.test(path));
  } catch {
    return false;
  }
}

function checkModality(
  modality: string,
  { protocol, model: { id, architecture } }: MediaFacts,
): void {
  // Every model reads text, also from a text file.
  if (modality === "text" || architecture.input_modalities.includes(modality)) return;
  const reads = architecture.input_modalities.join(", ");
  const param = { param: PARAMETER_NAMES[protocol].messages };
  // Claude Code (2.1.330) recognizes Anthropic's messages, removes its images or documents, and continues.
  if (protocol === "messages" && modality === "image") {
    throw new GatewayError("invalid", `Could not process image with ${id}: it accepts ${reads}`, param);
  }
  if (protocol === "messages" && modality === "file") {
    throw new GatewayError("invalid", `${id} does not support PDF input: it accepts ${reads}`, param);
  }
  throw new GatewayError("invalid", `Cannot send input of type "${modality}" to ${id}: it accepts ${reads}`, param);
}

/**
 * Checks that the model supports the reasoning mode and effort. The words "not supported" and "effort parameter" make
 * Claude Code (2.1.330) use the other mode, or no effort.
 */
function checkReasoning(
  { mode, effort }: Reasoning,
  { prompt, model, modes, efforts }: { prompt: Prompt; model: Model } & NonNullable<Model["reasoning"]>,
): void {
  const names = PARAMETER_NAMES[prompt.protocol];
  const isMessages = prompt.protocol === "messages";
  if (mode === "manual" && !modes.includes("manual")) {
    throw isMessages
      ? new GatewayError(
        "invalid",
        `thinking.type.enabled is not supported by ${model.id}; use output_config.effort with thinking.type "adaptive"`,
        { param: names.mode },
      )
      : new GatewayError(
        "invalid",
        `${names.budget}: ${model.id} does not support a budget of reasoning tokens; use ${names.effort}`,
        { param: names.budget },
      );
  }
  // Only the messages protocol can ask for the adaptive mode explicitly.
  if (mode === "adaptive" && isMessages && !modes.includes("adaptive")) {
    throw new GatewayError(
      "invalid",
      `thinking.type.adaptive is not supported by ${model.id}; use "enabled" with budget_tokens`,
      { param: names.mode },
    );
  }
  if (effort !== undefined && effort !== "none" && !efforts.includes(effort)) {
    const supported = efforts.map((name) => `"${name}"`).join(", ");
    throw new GatewayError(
      "invalid",
      `${names.effort}: ${model.id} does not support the effort parameter "${effort}"; it accepts ${supported}`,
      { param: names.effort },
    );
  }
}

/** Returns the names of the parameters that ask for reasoning. A request that turns it off has none. */
function reasoningParameters({ mode, effort, display }: Reasoning, protocol: Protocol): string[] {
  const names = PARAMETER_NAMES[protocol];
  const byEffort = effort !== undefined && effort !== "none";
  const asksForDisplay = display !== undefined && mode !== "off" && effort === undefined;
  const byMode = mode === "manual" || mode === "adaptive" || asksForDisplay;
  if (protocol === "responses") return byEffort || byMode ? [names.reasoning] : [];
  return [...(byMode ? [names.reasoning] : []), ...(byEffort ? [names.effort] : [])];
}
