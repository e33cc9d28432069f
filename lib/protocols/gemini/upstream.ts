/** The upstream's side of Google's generateContent. */
import type { UpstreamCodec } from "../upstream_codec.ts";
import { readReply, streamReader } from "./read_stream.ts";
import { readError } from "./read_error.ts";
import { writePrompt } from "./write_prompt.ts";

/** The codec for `models/{model}:generateContent` and `:streamGenerateContent?alt=sse`. */
export const geminiUpstream: UpstreamCodec = {
  protocol: "gemini",
  dialect: {
    customTools: false,
    namespaces: false,
    hostedFrom: ["gemini"],
    stops: 5,
    toolName: { legal: /[A-Za-z0-9_.:-]/, max: 128 },
    // Ids stay as they are, because signatures refer to them.
    callId: { legal: /[\s\S]/, max: 1_024 },
    alternates: true,
    prefill: false,
    mediaInResults: true,
    unsignedReasoning: false,
  },
  writePrompt,
  readReply,
  reader: streamReader,
  readError,
};
