/** Targets that support different features. */
import { UnsupportedParameters } from "../../../lib/protocols/canonical/unsupported_parameters.ts";
import type { ContentBlock, Prompt } from "../../../lib/protocols/canonical/types.ts";
import { modelSchema } from "../../../lib/catalog/model.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import type { AdaptTarget, Dialect, UpstreamCodec, WriteTarget } from "../../../lib/protocols/upstream_codec.ts";
import { adaptPrompt } from "../../../lib/protocols/translate/adapt_prompt.ts";
import type { AdaptedPrompt } from "../../../lib/protocols/translate/adapt_prompt.ts";
import { runToEnd } from "../../../lib/scheduler.ts";

const CHAT: Dialect = {
  customTools: false,
  namespaces: false,
  hostedFrom: [],
  stops: 4,
  toolName: { legal: /[A-Za-z0-9_-]/, max: 64 },
  callId: { legal: /[\s\S]/, max: 256 },
  alternates: false,
  prefill: true,
  mediaInResults: false,
  unsignedReasoning: true,
};

/** Dialects by the vendor they resemble. */
export const DIALECTS = {
  messages: {
    protocol: "messages",
    issuer: "anthropic",
    dialect: {
      customTools: false,
      namespaces: false,
      hostedFrom: ["messages"],
      stops: 4,
      toolName: { legal: /[A-Za-z0-9_-]/, max: 128 },
      callId: { legal: /[A-Za-z0-9_-]/, max: 128 },
      alternates: true,
      prefill: false,
      mediaInResults: true,
      unsignedReasoning: false,
    },
  },
  "messages with prefill": {
    protocol: "messages",
    issuer: "anthropic",
    dialect: {
      customTools: false,
      namespaces: false,
      hostedFrom: [],
      stops: 2,
      toolName: { legal: /[A-Za-z0-9_-]/g, max: 64 },
      callId: { legal: /[A-Za-z0-9_-]/g, max: 64 },
      alternates: true,
      prefill: true,
      mediaInResults: false,
      unsignedReasoning: true,
    },
  },
  chat: { protocol: "chat", issuer: "vendor", dialect: CHAT },
  "chat that continues nothing": {
    protocol: "chat",
    issuer: "vendor",
    dialect: { ...CHAT, prefill: false, unsignedReasoning: false, mediaInResults: true },
  },
  mistral: {
    protocol: "chat",
    issuer: "vendor",
    dialect: { ...CHAT, callId: { legal: /[A-Za-z0-9]/, max: 9, exact: true }, alternates: true, prefill: false },
  },
  responses: {
    protocol: "responses",
    issuer: "openai",
    dialect: {
      ...CHAT,
      customTools: true,
      namespaces: true,
      hostedFrom: ["responses"],
      stops: 0,
      callId: { legal: /[\s\S]/, max: 64 },
      mediaInResults: true,
      unsignedReasoning: false,
    },
  },
  gemini: {
    protocol: "gemini",
    issuer: "google",
    dialect: { ...CHAT, stops: 5, alternates: true, prefill: false, unsignedReasoning: false },
  },
} as const satisfies Record<string, Pick<AdaptTarget, "protocol" | "issuer" | "dialect">>;

/** A kind of target. */
export type Kind = keyof typeof DIALECTS;

/** Every kind of target. */
export const KINDS = Object.keys(DIALECTS) as Kind[];

/** A target, with some of its dialect or its row otherwise. */
export function targetOf(
  kind: Kind,
  { dialect = {}, row = {} }: { dialect?: Partial<Dialect>; row?: Record<string, unknown> } = {},
): AdaptTarget {
  return {
    protocol: DIALECTS[kind].protocol,
    issuer: DIALECTS[kind].issuer,
    model: "upstream-model",
    row: modelSchema.parse({
      id: "test/model",
      created: 0,
      context_length: 100_000,
      pricing: { prompt: "0", completion: "0" },
      reasoning: { modes: ["manual", "adaptive"] },
      targets: [{ upstream: "u", model: "upstream-model" }],
      ...row,
    }),
    dialect: { ...DIALECTS[kind].dialect, ...dialect },
    dropped: new UnsupportedParameters(),
  };
}

/** A picture. */
export const picture: ContentBlock = {
  type: "media",
  media: { kind: "bytes", base64: "AAAA", mediaType: "image/png" },
};

/** Adapts a prompt at once. */
export function adapt(prompt: Prompt, target: AdaptTarget): AdaptedPrompt {
  return runToEnd(adaptPrompt(prompt, target));
}

/** Writes a prompt as requests to the target are made: adapts it first. */
export function writeAdapted(codec: UpstreamCodec, prompt: Prompt, target: WriteTarget): JsonObject {
  return runToEnd(codec.writePrompt(adapt(prompt, { ...target, protocol: codec.protocol }).prompt, target));
}
