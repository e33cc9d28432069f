/** Reads the body of a responses request. */
import { effortOf } from "../canonical/effort.ts";
import type { Prompt, Reasoning, Sampling } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import type { ContentSizes, Json, JsonObject } from "../../json/mod.ts";
import type { ClientPermissions } from "../codec.ts";
import { booleanOf, listOf, numberOf, objectOf, present, someOf, stringOf, textsOf, withoutNulls } from "../members.ts";
import { readOutputFormat } from "../openai_settings.ts";
import { plainPrompt, plainSizes } from "../plain_contents.ts";
import { ENCRYPTED, NATIVE_ISSUER } from "./encrypted_content.ts";
import { readInput, readInstructions } from "./read_input.ts";
import { unknownIn } from "../canonical/unknown_members.ts";
import { checkImages } from "./read_parts.ts";
import { readToolChoice, readTools } from "./read_tools.ts";

/** The entry of `include` that asks for the log probabilities of the answer's tokens. */
export const LOGPROBS = "message.output_text.logprobs";

const BODY_MEMBERS = new Set(
  `model input instructions tools tool_choice parallel_tool_calls max_output_tokens temperature top_p top_logprobs
  presence_penalty frequency_penalty reasoning text include stream truncation provider models user
  previous_response_id conversation prompt background`.split(/\s+/),
);
const REASONING_MEMBERS = new Set(["effort", "summary", "generate_summary", "max_tokens", "enabled"]);

/** Members that need state at the vendor, with what the client can do without them. */
const STATEFUL_MEMBERS: Readonly<Record<string, string>> = {
  previous_response_id: "send the whole conversation in input",
  conversation: "send the whole conversation in input",
  prompt: "send the prompt itself in instructions and input",
};

/**
 * Reads a body that the schema has accepted.
 * @throws {GatewayError} `invalid`, for requests that need state, for content that cannot be passed on, and for too
 * many images or tools
 */
export function readPrompt(body: JsonObject, permissions?: ClientPermissions): Prompt {
  refuseState(body);
  checkImages(body.input);
  return { ...readSettings(body), ...readContents(body, permissions) };
}

/** Reads a request whose contents are plain. @throws {GatewayError} `invalid`, as `readPrompt` */
export function readPlainPrompt(head: JsonObject, sizes: ContentSizes, body: () => JsonObject): Prompt {
  refuseState(head);
  const { entries } = sizes;
  // An input that is a text has no entries, and is one message.
  const messages = (entries.get("input") || 1) + (entries.has("instructions") ? 1 : 0);
  return plainPrompt(
    readSettings(head),
    plainSizes(sizes, { messages, issuer: NATIVE_ISSUER }),
    () => readContents(body()),
  );
}

function readContents(body: JsonObject, permissions?: ClientPermissions): Pick<Prompt, "messages" | "tools"> {
  return {
    messages: [
      ...readInstructions(body.instructions, permissions),
      ...readInput(body.input, permissions),
    ],
    tools: readTools(body),
  };
}

function readSettings(body: JsonObject): Omit<Prompt, "messages" | "tools"> {
  const reasoning = readReasoning(body);
  const fallbacks = textsOf(body.models);
  return {
    protocol: "responses",
    model: stringOf(body.model) ?? "",
    ...readToolChoice(body),
    stop: [],
    sampling: readSampling(body),
    stream: body.stream === true,
    ...present({
      parallelToolCalls: booleanOf(body.parallel_tool_calls),
      maxTokens: numberOf(body.max_output_tokens),
      reasoning,
      format: readOutputFormat(objectOf(objectOf(body.text)?.format)),
      truncation: body.truncation === "auto" || body.truncation === "disabled" ? body.truncation : undefined,
      provider: objectOf(body.provider),
      fallbacks: fallbacks.length > 0 ? fallbacks : undefined,
      user: stringOf(body.user) ?? stringOf(body.safety_identifier),
    }),
    ...unknownIn("responses", body, BODY_MEMBERS, {
      more: { include: otherIncludes(body), text: otherText(body) },
    }),
  };
}

function refuseState(body: JsonObject): void {
  for (const [param, instead] of Object.entries(STATEFUL_MEMBERS)) {
    if (body[param] === undefined || body[param] === null) continue;
    throw new GatewayError("invalid", `Cannot use ${param}: this gateway is stateless, ${instead}`, {
      param,
      code: "unsupported_parameter",
    });
  }
  if (body.background === true) {
    throw new GatewayError("invalid", "Cannot run in the background: this gateway has no background mode", {
      param: "background",
      code: "unsupported_parameter",
    });
  }
}

function readSampling(body: JsonObject): Sampling {
  return present({
    temperature: numberOf(body.temperature),
    topP: numberOf(body.top_p),
    frequencyPenalty: numberOf(body.frequency_penalty),
    presencePenalty: numberOf(body.presence_penalty),
    logprobs: listOf(body.include).includes(LOGPROBS) || undefined,
    topLogprobs: numberOf(body.top_logprobs),
  });
}

/** Reads the reasoning options; returns undefined if all are absent or null. */
function readReasoning(body: JsonObject): Reasoning | undefined {
  const value = objectOf(body.reasoning) ?? {};
  const summary = stringOf(value.summary) ?? stringOf(value.generate_summary);
  const budgetTokens = numberOf(value.max_tokens);
  let mode: Reasoning["mode"];
  if (value.enabled === false) mode = "off";
  else if (budgetTokens !== undefined) mode = "manual";
  const reasoning: Reasoning = {
    ...present({
      mode,
      budgetTokens,
      // Clients of this extension that only enable reasoning expect the effort `medium`.
      effort: effortOf(value.effort) ?? (value.enabled === true && budgetTokens === undefined ? "medium" : undefined),
      display: summary === undefined ? undefined : "summarized" as const,
      encrypted: listOf(body.include).includes(ENCRYPTED) || undefined,
    }),
    ...unknownIn("responses", withoutNulls(value), REASONING_MEMBERS, {
      // `auto` is the default kind of summary.
      more: { summary: summary === "auto" ? undefined : summary },
    }),
  };
  return Object.keys(reasoning).length === 0 ? undefined : reasoning;
}

/** Returns the members of `text` besides the format, such as the verbosity; undefined if there are none. */
function otherText(body: JsonObject): JsonObject | undefined {
  const { format: _format, ...others } = objectOf(body.text) ?? {};
  return someOf(others);
}

/** Returns the entries of `include` that the canonical form does not model; undefined if there are none. */
function otherIncludes(body: JsonObject): Json[] | undefined {
  const others = listOf(body.include).filter((name) => name !== ENCRYPTED && name !== LOGPROBS);
  return others.length === 0 ? undefined : others;
}
