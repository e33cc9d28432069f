/** Who speaks what on both sides of a crossing, and the models that are asked for. */
import { EFFORTS, type Protocol } from "../../lib/protocols/canonical/types.ts";
import { type Model, modelSchema } from "../../lib/catalog/model.ts";
import type { JsonObject } from "../../lib/json/mod.ts";
import { chat } from "../../lib/protocols/chat/mod.ts";
import type { Codec, Echo } from "../../lib/protocols/codec.ts";
import { checkBody } from "../../lib/protocols/fields.ts";
import { messages } from "../../lib/protocols/messages/mod.ts";
import { responses } from "../../lib/protocols/responses/mod.ts";
import type { UpstreamProtocol } from "../../lib/protocols/upstream_codec.ts";
import { QUIRKS } from "../../lib/protocols/quirks/mod.ts";
import type { Quirk } from "../../lib/protocols/quirks/quirk.ts";
import { type VendorName, vendorOf } from "../../lib/upstreams/vendors.ts";

/** The protocols that clients speak. */
export const CLIENTS: Readonly<Record<Protocol, Codec>> = { chat, responses, messages };

/** Names of the clients' protocols. */
export const PROTOCOLS: readonly Protocol[] = ["chat", "responses", "messages"];

/** The protocols that upstreams speak. */
export const UPSTREAMS: readonly UpstreamProtocol[] = ["chat", "responses", "messages", "gemini"];

/** Where a request goes: an upstream's protocol as one vendor speaks it. */
export interface Side {
  protocol: UpstreamProtocol;
  issuer: string;
  quirk: Quirk;
}

/** Vendors that stand for their protocols, two of chat that keep reasoning, and one with rules for ids. */
const VENDORS_OF: Readonly<Record<string, readonly [UpstreamProtocol, VendorName]>> = {
  chat: ["chat", "openai-compatible"],
  responses: ["responses", "openai"],
  messages: ["messages", "anthropic"],
  gemini: ["gemini", "gemini"],
  openrouter: ["chat", "openrouter"],
  deepseek: ["chat", "deepseek"],
  mistral: ["chat", "mistral"],
};

/** The side of this name: a protocol's, or a vendor's of chat. */
export function sideOf(name: string): Side {
  const found = VENDORS_OF[name];
  if (found === undefined) throw new RangeError(`Cannot cross to "${name}": nobody knows it`);
  const [protocol, vendor] = found;
  const quirk: Quirk = QUIRKS[vendor];
  return { protocol, quirk, issuer: quirk.issuer?.("anthropic/model-x") ?? vendorOf(vendor).issuer ?? vendor };
}

const EVERYTHING = [
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
  "verbosity",
];

/** Models that differ in what they can do. */
const ROWS: Readonly<Record<string, JsonObject>> = {
  "acme/thinker": { reasoning: { modes: ["manual", "adaptive"], efforts: [...EFFORTS] } },
  "acme/adaptive": { reasoning: { modes: ["adaptive"], efforts: ["low", "medium", "high"] } },
  "acme/manual": { reasoning: { modes: ["manual"], efforts: ["low", "medium", "high"] } },
  "acme/plain": { supported_parameters: ["max_tokens", "tools", "tool_choice"] },
  "acme/one-knob": { features: { exclusive_sampling: true } },
  "acme/continues": { features: { prefill: true, system_messages: true } },
};

/** The catalog row of a model. */
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
    supported_parameters: EVERYTHING,
    targets: [{ upstream: "vendor", model: "model-x" }],
    ...row,
  });
}

/** How a client of each protocol asks for a streamed answer with everything there is to see. */
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
};

/** What an answer to a client's request repeats of it. */
export function echoOf(protocol: Protocol, request: JsonObject = ASKED[protocol]): Echo {
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
