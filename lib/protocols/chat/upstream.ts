/** The upstream's side of chat completions, as OpenAI defines it. Differences of other vendors are in `../quirks`. */
import type { UpstreamCodec } from "../upstream_codec.ts";
import { readOpenaiError } from "../read_openai_error.ts";
import { readReply, streamReader } from "./read_stream.ts";
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
    // Kimi wants its `functions.name:0` back; OpenAI refuses ids of more than 40 characters.
    callId: { legal: /[!-~]/, max: 40 },
    alternates: false,
    // A final assistant message is accepted, but answered instead of continued.
    prefill: false,
    mediaInResults: false,
    unsignedReasoning: false,
  },
  writePrompt,
  readReply,
  reader: streamReader,
  readError: readOpenaiError,
};
