/** The codecs of all client protocols. A new protocol needs a folder of its own and an entry here. */
import type { Protocol } from "./canonical/types.ts";
import { chat } from "./chat/mod.ts";
import type { Codec } from "./codec.ts";
import { gemini } from "./gemini/mod.ts";
import { messages } from "./messages/mod.ts";
import { responses } from "./responses/mod.ts";

/** Codecs by protocol. */
export const CLIENT_CODECS: Readonly<Record<Protocol, Codec>> = { chat, responses, messages, gemini };
