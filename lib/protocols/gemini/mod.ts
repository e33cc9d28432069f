/** Gemini's protocol, `POST /v1beta/models/{model}:generateContent` and `:streamGenerateContent`, for clients. */
import { GatewayError } from "../../errors.ts";
import { spliceMembers } from "../../json/mod.ts";
import type { Codec } from "../codec.ts";
import { googleErrorReply } from "../error_bodies.ts";
import { readPrompt, readSteps } from "./read_prompt.ts";
import { schema } from "./schema.ts";
import { writeUsage } from "./gemini_usage.ts";
import { writeReply } from "./write_reply.ts";
import { streamWriter } from "./write_stream.ts";
import type { ExtrasTable } from "../extras.ts";

/** Google's members and tools. */
const geminiExtras: ExtrasTable = {
  members: {
    serviceTier: { feature: "service_tier", plain: ["", "unspecified", "standard", "flex"] },
    cachedContent: { feature: "vendor_state" },
    // It refers to an answer that the vendor keeps.
    continuationToken: { feature: "vendor_state" },
  },
  plainTools: new Set(["functionDeclarations", "computerUse"]),
  remoteTools: new Set(["mcpServers"]),
  toolMembers: {
    googleSearch: "web_search",
    googleSearchRetrieval: "web_search",
    enterpriseWebSearch: "web_search",
    exaAiSearch: "web_search",
    parallelAiSearch: "web_search",
    codeExecution: "code_execution",
    urlContext: "web_fetch",
    fileSearch: "file_search",
    googleMaps: "google_maps",
    retrieval: "retrieval",
  },
};

export { inCamelCase } from "./member_names.ts";
export { readSteps } from "./read_prompt.ts";
export { withoutRepeatedResults } from "./repeated_results.ts";

/**
 * Matches a frame with usage, or the last frame. If the upstream reports no usage, the gateway adds its own to the last
 * one.
 */
const USAGE_OR_LAST = /"(?:usageMetadata"\s*:\s*\{|finishReason"\s*:\s*")/;

/** The protocol of Gemini. */
export const gemini: Codec = {
  protocol: "gemini",
  schema,
  readPrompt,
  readSteps,
  extras: geminiExtras,
  writeReply,
  writer: streamWriter,
  hasUsage: ({ data }) => USAGE_OR_LAST.test(data),
  withUsage: (text, usage) => spliceMembers(text, { usageMetadata: JSON.stringify(writeUsage(usage)) }),
  writeError: googleErrorReply,
  // Google's SDKs for Python and Go fail at a comment. All of its SDKs ignore blank lines.
  keepAlive: "\n\n",
  contextError({ input, output, limit }) {
    const message = input > limit
      ? `The input token count (${input}) exceeds the maximum number of tokens allowed (${limit}).`
      : `The input token count (${input}) and maxOutputTokens (${output}) exceed the maximum number of tokens allowed ` +
        `(${limit}).`;
    return new GatewayError("invalid", message, { code: "context_length_exceeded" });
  },
};
