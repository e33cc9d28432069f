/** Google's generateContent as an upstream protocol. */
import type { UpstreamCodec } from "../upstream_codec.ts";
import { readReply, streamReader } from "./read_stream.ts";
import { readError } from "./read_error.ts";
import { writePrompt } from "./write_prompt.ts";

/** The protocol of `models/{model}:generateContent` and `:streamGenerateContent?alt=sse`. */
export const geminiUpstream: UpstreamCodec = {
  protocol: "gemini",
  dialect: {
    customTools: false,
    namespaces: false,
    hostedFrom: ["gemini"],
    stops: 5,
    toolName: { legal: /[A-Za-z0-9_.:-]/, max: 128 },
    // Every id is legal, because signatures refer to ids.
    callId: { legal: /[\s\S]/, max: 1_024 },
    alternates: true,
    prefill: false,
    mediaInResults: true,
    unsignedReasoning: false,
  },
  writePrompt,
  readReply,
  // The finish reason depends on the parts of the answer.
  readSummary: readReply,
  reader: streamReader,
  readError,
};
