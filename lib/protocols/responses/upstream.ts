/** The responses protocol as an upstream protocol. */
import type { UpstreamCodec } from "../upstream_codec.ts";
import { readOpenaiError } from "../read_openai_error.ts";
import { readReply, readSummary, streamReader } from "./read_stream.ts";
import { writePrompt } from "./write_prompt.ts";

/**
 * The responses protocol of upstreams, as OpenAI defines it, but without state: nothing is stored at the vendor, and
 * every request has its whole conversation.
 */
export const responsesUpstream: UpstreamCodec = {
  protocol: "responses",
  dialect: {
    customTools: true,
    namespaces: true,
    hostedFrom: ["responses"],
    // OpenAI: max_output_tokens must be at least 16.
    minTokens: 16,
    // The protocol has no stop sequences.
    stops: 0,
    toolName: { legal: /[A-Za-z0-9_-]/, max: 64 },
    callId: { legal: /[\x21-\x7e]/, max: 64 },
    alternates: false,
    // OpenAI accepts a final assistant message, but answers it and does not continue it.
    prefill: false,
    mediaInResults: true,
    unsignedReasoning: false,
  },
  writePrompt,
  readReply,
  readSummary,
  reader: streamReader,
  readError: readOpenaiError,
};
