/**
 * The protocols that upstreams can speak. A new protocol needs a folder in `protocols/` and an entry in both tables.
 */
import { chatRelay } from "../protocols/chat/relay.ts";
import { chatUpstream } from "../protocols/chat/upstream.ts";
import { geminiRelay } from "../protocols/gemini/relay.ts";
import { geminiUpstream } from "../protocols/gemini/upstream.ts";
import { messagesRelay } from "../protocols/messages/relay.ts";
import { messagesUpstream } from "../protocols/messages/upstream.ts";
import type { Relay } from "../protocols/relay.ts";
import { responsesRelay } from "../protocols/responses/relay.ts";
import { responsesUpstream } from "../protocols/responses/upstream.ts";
import type { Protocol } from "../protocols/canonical/types.ts";
import type { UpstreamCodec } from "../protocols/upstream_codec.ts";

/** Upstream codecs by protocol. */
export const UPSTREAM_CODECS: Readonly<Record<Protocol, UpstreamCodec>> = {
  chat: chatUpstream,
  responses: responsesUpstream,
  messages: messagesUpstream,
  gemini: geminiUpstream,
};

/** Relays by protocol, for clients and upstreams with the same protocol. */
export const RELAYS: Readonly<Record<Protocol, Relay>> = {
  chat: chatRelay,
  responses: responsesRelay,
  messages: messagesRelay,
  gemini: geminiRelay,
};
