import { COUNTS } from "../fields.ts";
import type { UpstreamCodec } from "../upstream_codec.ts";
import { readError } from "./read_error.ts";
import { readReply, streamReader } from "./read_stream.ts";
import { writePrompt } from "./write_prompt.ts";

/** The upstream's side of the messages protocol, `POST /v1/messages`. The dialect is Anthropic's. */
export const messagesUpstream: UpstreamCodec = {
  protocol: "messages",
  dialect: {
    customTools: false,
    namespaces: false,
    hostedFrom: ["messages"],
    // Anthropic documents no limit: as many as a client may send.
    stops: COUNTS.stops,
    toolName: { legal: /[A-Za-z0-9_-]/, max: 128 },
    callId: { legal: /[A-Za-z0-9_-]/, max: 128 },
    alternates: true,
    // The newest models refuse it; rows of models that accept it say so.
    prefill: false,
    mediaInResults: true,
    unsignedReasoning: false,
  },
  writePrompt,
  readReply,
  reader: streamReader,
  readError,
};
