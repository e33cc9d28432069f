/** Protocols, targets and models of translated requests. */
import { EFFORTS, type Protocol } from "../../lib/protocols/canonical/types.ts";
import { type Model, modelSchema } from "../../lib/catalog/model.ts";
import type { JsonObject } from "../../lib/json/mod.ts";
import { CLIENT_CODECS } from "../../lib/protocols/client_codecs.ts";
import type { ResponseContext } from "../../lib/protocols/codec.ts";
import { checkBody } from "../../lib/protocols/fields.ts";
import { QUIRKS } from "../../lib/protocols/quirks/mod.ts";
import type { Quirk } from "../../lib/protocols/quirks/quirk.ts";
import { type VendorName, vendorOf } from "../../lib/upstreams/vendors.ts";
import { EVERY_PARAMETER } from "../protocols/canonical/every_parameter.ts";

/** The codecs of clients' protocols. */
export const CLIENTS = CLIENT_CODECS;

/** Clients' protocols. */
export { PROTOCOLS } from "../upstream/replies.ts";

/** Upstreams' protocols. */
export const UPSTREAMS: readonly Protocol[] = ["chat", "responses", "messages", "gemini"];

/** Target of a request: an upstream's protocol in one vendor's dialect. */
export interface Side {
  protocol: Protocol;
  issuer: string;
  quirk: Quirk;
}

/**
 * Targets by name: one vendor for each protocol, two chat vendors that accept reasoning, and one with rules for call
 * ids.
 */
const VENDORS_OF: Readonly<Record<string, readonly [Protocol, VendorName]>> = {
  chat: ["chat", "openai-compatible"],
  responses: ["responses", "openai"],
  messages: ["messages", "anthropic"],
  gemini: ["gemini", "gemini"],
  openrouter: ["chat", "openrouter"],
  deepseek: ["chat", "deepseek"],
  mistral: ["chat", "mistral"],
};

/** Returns a target by name. */
export function sideOf(name: string): Side {
  const found = VENDORS_OF[name];
  if (found === undefined) throw new RangeError(`Cannot cross to "${name}": nobody knows it`);
  const [protocol, vendor] = found;
  const quirk: Quirk = QUIRKS[vendor];
  return { protocol, quirk, issuer: quirk.issuer?.("anthropic/model-x") ?? vendorOf(vendor).issuer ?? vendor };
}

/** Catalog rows that differ in capabilities. */
const ROWS: Readonly<Record<string, JsonObject>> = {
  "acme/thinker": { reasoning: { modes: ["manual", "adaptive"], efforts: [...EFFORTS] } },
  "acme/adaptive": { reasoning: { modes: ["adaptive"], efforts: ["low", "medium", "high"] } },
  "acme/manual": { reasoning: { modes: ["manual"], efforts: ["low", "medium", "high"] } },
  "acme/plain": { supported_parameters: ["max_tokens", "tools", "tool_choice"] },
  "acme/one-knob": { features: { exclusive_sampling: true } },
  "acme/continues": { features: { prefill: true, system_messages: true } },
};

/** Returns the catalog row of a model. */
export function rowOf(id: string): Model {
  const row = ROWS[id];
  if (row === undefined) throw new RangeError(`Cannot ask for "${id}": it is not among the models`);
  return modelSchema.parse({
    id,
    created: 0,
    context_length: 200_000,
    architecture: { input_modalities: ["text", "image", "file"] },
    pricing: { prompt: "0", completion: "0" },
    top_provider: { max_completion_tokens: 64_000 },
    supported_parameters: EVERY_PARAMETER,
    targets: [{ upstream: "vendor", model: "model-x" }],
    ...row,
  });
}

/** Requests for a streamed answer with reasoning and usage. */
const ASKED: Readonly<Record<Protocol, JsonObject>> = {
  chat: {
    model: "acme/thinker",
    messages: [{ role: "user", content: "Hi" }],
    stream: true,
    stream_options: { include_usage: true },
  },
  responses: {
    model: "acme/thinker",
    input: "Hi",
    stream: true,
    reasoning: { summary: "auto" },
    include: ["reasoning.encrypted_content"],
  },
  messages: {
    model: "acme/thinker",
    max_tokens: 100,
    messages: [{ role: "user", content: "Hi" }],
    stream: true,
    thinking: { type: "adaptive", display: "summarized" },
  },
  gemini: {
    model: "acme/thinker",
    contents: [{ role: "user", parts: [{ text: "Hi" }] }],
    stream: true,
    generationConfig: { thinkingConfig: { includeThoughts: true } },
  },
};

/** Returns the facts about a request that its answer repeats. */
export function responseContextOf(protocol: Protocol, request: JsonObject = ASKED[protocol]): ResponseContext {
  const codec = CLIENTS[protocol];
  checkBody(codec.schema, request);
  return {
    requestId: "r1",
    createdAt: 1_790_000_000,
    model: "acme/thinker",
    request,
    prompt: codec.readPrompt(request),
  };
}
