/** Chat completions as an upstream protocol, as OpenAI defines it. Differences of other vendors are in `../quirks`. */
import type { UpstreamCodec } from "../upstream_codec.ts";
import { readOpenaiError } from "../read_openai_error.ts";
import { readReply, readSummary } from "./read_reply.ts";
import { streamReader } from "./read_stream.ts";
import { writePrompt } from "./write_prompt.ts";

/** The chat protocol of upstreams. Entries of `reasoning_details` name their own issuers. */
export const chatUpstream: UpstreamCodec = {
  protocol: "chat",
  dialect: {
    customTools: true,
    namespaces: false,
    hostedFrom: ["chat"],
    stops: 4,
    toolName: { legal: /[A-Za-z0-9_-]/, max: 64 },
    // Kimi requires its own ids, such as `functions.name:0`; OpenAI refuses ids of more than 40 characters.
    callId: { legal: /[!-~]/, max: 40 },
    alternates: false,
    // OpenAI accepts a final assistant message, but answers it and does not continue it.
    prefill: false,
    mediaInResults: false,
    unsignedReasoning: false,
  },
  writePrompt,
  readReply,
  readSummary,
  reader: streamReader,
  readError: readOpenaiError,
};
