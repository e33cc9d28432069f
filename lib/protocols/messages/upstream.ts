/** The messages protocol, `POST /v1/messages`, as an upstream protocol. */
import { COUNTS } from "../fields.ts";
import type { UpstreamCodec } from "../upstream_codec.ts";
import { readError } from "./read_error.ts";
import { readReply, readSummary, streamReader } from "./read_stream.ts";
import { writePrompt } from "./write_prompt.ts";

/** The messages protocol of upstreams. The dialect is that of Anthropic. */
export const messagesUpstream: UpstreamCodec = {
  protocol: "messages",
  dialect: {
    customTools: false,
    namespaces: false,
    hostedFrom: ["messages"],
    // Anthropic documents no limit, so this is the limit of what a client may send.
    stops: COUNTS.stops,
    toolName: { legal: /[A-Za-z0-9_-]/, max: 128 },
    callId: { legal: /[A-Za-z0-9_-]/, max: 128 },
    alternates: true,
    // The newest models refuse it. The catalog says which models accept it.
    prefill: false,
    mediaInResults: true,
    unsignedReasoning: false,
  },
  writePrompt,
  readReply,
  readSummary,
  reader: streamReader,
  readError,
};
