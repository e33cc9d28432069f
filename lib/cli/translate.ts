/** `translate`: shows what an upstream would be sent for a request body, and what would be lost. */
import { UnsupportedParameters } from "../protocols/canonical/unsupported_parameters.ts";
import { EFFORTS, type Protocol } from "../protocols/canonical/types.ts";
import { createCatalog } from "../catalog/catalog.ts";
import { type Model, modelSchema } from "../catalog/model.ts";
import type { Config } from "../config.ts";
import { GatewayError } from "../errors.ts";
import { parseBody } from "../server/body.ts";
import { checkModelRules } from "../request/rules.ts";
import { chat } from "../protocols/chat/mod.ts";
import type { Codec } from "../protocols/codec.ts";
import { checkBody } from "../protocols/fields.ts";
import { messages } from "../protocols/messages/mod.ts";
import { responses } from "../protocols/responses/mod.ts";
import type { UpstreamProtocol } from "../protocols/upstream_codec.ts";
import { modelIssuer } from "../upstreams/http_upstream.ts";
import { quirkFor } from "../protocols/quirks/quirk.ts";
import { QUIRKS } from "../protocols/quirks/mod.ts";
import { translatePrompt } from "../upstreams/translation.ts";
import { spokenBy, type Vendor, type VendorName, vendorOf, VENDORS } from "../upstreams/vendors.ts";
import { writeErr, writeOut } from "./output.ts";

const CODECS: Readonly<Record<Protocol, Codec>> = { chat, responses, messages };

/** Protocols, each with its default vendor. */
const TARGETS: Readonly<Record<UpstreamProtocol, VendorName>> = {
  chat: "openai-compatible",
  responses: "openai",
  messages: "anthropic",
  gemini: "gemini",
};

/** Options of `translate`. */
export interface TranslateOptions {
  config: Config;
  from: string;
  to: string;
  vendor?: string;
  /** The request body. */
  bytes: Uint8Array<ArrayBuffer>;
}

/** Prints the upstream's body on standard output and the named losses on standard error. Returns the exit code. */
export async function translate({ config, from, to, vendor, bytes }: TranslateOptions): Promise<number> {
  const codec = Object.hasOwn(CODECS, from) ? CODECS[from as Protocol] : undefined;
  if (codec === undefined) return fail(`Unknown protocol "${from}"; known: ${Object.keys(CODECS).join(", ")}`);
  if (!Object.hasOwn(TARGETS, to)) return fail(`Unknown protocol "${to}"; known: ${Object.keys(TARGETS).join(", ")}`);
  const protocol = to as UpstreamProtocol;
  const name = vendor ?? TARGETS[protocol];
  if (!Object.hasOwn(VENDORS, name)) {
    return fail(`Unknown vendor "${name}"; known: ${Object.keys(VENDORS).join(", ")}`);
  }
  const known: Vendor = vendorOf(name as VendorName);
  const spoken = spokenBy(known);
  if (!spoken.includes(protocol)) {
    return fail(`Vendor "${name}" does not speak "${to}"; it speaks: ${spoken.join(", ")}`);
  }
  try {
    const { value: body } = await parseBody(bytes);
    checkBody(codec.schema, body);
    const asked = codec.readPrompt(body);
    const row = createCatalog(config).find(asked.model) ?? anyModel(asked.model);
    const dropped = new UnsupportedParameters({ prompt: asked, request: body });
    const prompt = checkModelRules(asked, row, dropped);
    const model = row.targets[0]?.model ?? asked.model;
    const quirk = QUIRKS[name as VendorName];
    const written = translatePrompt(prompt, {
      protocol,
      model,
      row,
      issuer: modelIssuer(model, { name, vendor: known, quirk }),
      quirk: quirkFor(quirk, protocol),
      dropped,
    });
    writeOut(`${JSON.stringify(written.body, null, 2)}\n`);
    if (dropped.names.length > 0) writeErr(`dropped: ${dropped.names.join(", ")}\n`);
    return 0;
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return fail(`${error.status}: ${error.message}`);
  }
}

/** A model that is not in the catalog is taken to be able to do everything. */
function anyModel(id: string): Model {
  return modelSchema.parse({
    id: id.includes("/") ? id : `any/${id}`,
    created: 0,
    context_length: 1_000_000,
    architecture: { input_modalities: ["text", "image", "file", "audio", "video"] },
    pricing: { prompt: "0", completion: "0" },
    supported_parameters: [
      "temperature",
      "top_p",
      "top_k",
      "min_p",
      "top_a",
      "frequency_penalty",
      "presence_penalty",
      "repetition_penalty",
      "max_tokens",
      "logit_bias",
      "logprobs",
      "top_logprobs",
      "seed",
      "stop",
      "tools",
      "tool_choice",
      "parallel_tool_calls",
      "response_format",
      "structured_outputs",
      "reasoning",
    ],
    reasoning: { modes: ["manual", "adaptive"], efforts: [...EFFORTS] },
    targets: [{ upstream: "any", model: id }],
  });
}

function fail(message: string): number {
  writeErr(`${message}\n`);
  return 1;
}
