/** Translates an upstream's answers for a client, and a client's requests for an upstream. */
import { aggregateEvents } from "../../lib/protocols/canonical/aggregate_events.ts";
import type { Protocol, ReplyEvent } from "../../lib/protocols/canonical/types.ts";
import { isObject, type Json, type JsonObject, parseJson } from "../../lib/json/mod.ts";
import type { Frame } from "../../lib/protocols/codec.ts";
import { normalizeFinish } from "../../lib/protocols/translate/restore_answer.ts";
import { restoredEvents } from "../../lib/upstreams/answer_feeds.ts";
import { UPSTREAM_CODECS } from "../../lib/upstreams/protocols.ts";
import { CLIENTS, responseContextOf, sideOf } from "../golden/crossings.ts";
import { readEvents } from "../golden/recorded.ts";
import { crossRequest } from "../golden/requests.ts";
import { writeFrames } from "../golden/round_trips.ts";

function framesOf(data: readonly Json[]): Frame[] {
  return data.map((value): Frame => {
    if (typeof value === "string") return { data: value };
    const type = isObject(value) && typeof value.type === "string" ? { event: value.type } : {};
    return { ...type, data: JSON.stringify(value) };
  });
}

/** Events of an upstream's stream, settled. */
export function events(from: Protocol, data: readonly Json[]): ReplyEvent[] {
  return readEvents({ protocol: from, frames: framesOf(data) });
}

/** The stream that a client gets for an upstream's stream: the data of each frame, parsed. */
export function streamed(from: Protocol, data: readonly Json[], client: Protocol): Json[] {
  return valuesOf(writeFrames(events(from, data), client));
}

function valuesOf(frames: readonly Frame[]): Json[] {
  return frames.map(({ data }) => data === "[DONE]" ? data : parseJson(data));
}

/** The answer that a client gets for an upstream's whole answer. */
export function whole(from: Protocol, body: JsonObject, client: Protocol): JsonObject {
  const reply = UPSTREAM_CODECS[from].readReply(body, { issuer: sideOf(from).issuer });
  return CLIENTS[client].writeReply(
    aggregateEvents(restoredEvents(reply, normalizeFinish())),
    responseContextOf(client),
  );
}

/** The whole answer that a client gets for an upstream's stream. */
export function collected(from: Protocol, data: readonly Json[], client: Protocol): JsonObject {
  return CLIENTS[client].writeReply(aggregateEvents(events(from, data)), responseContextOf(client));
}

/** A request's body at an upstream. */
export function sent(from: Protocol, to: string, body: JsonObject): JsonObject {
  return crossRequest(from, to, { ...REQUIRED[from], ...body }).body;
}

/** Names of what the translation dropped. */
export function lost(from: Protocol, to: string, body: JsonObject): readonly string[] {
  return crossRequest(from, to, { ...REQUIRED[from], ...body }).dropped;
}

/** Required members of each protocol's requests. */
const REQUIRED: Readonly<Record<Protocol, JsonObject>> = {
  chat: { model: "acme/thinker" },
  responses: { model: "acme/thinker" },
  messages: { model: "acme/thinker", max_tokens: 9_000 },
  gemini: { model: "acme/thinker" },
};

/** One chunk of a chat stream. */
export function chunk(delta: JsonObject, finish: string | null = null, more: JsonObject = {}): JsonObject {
  return { id: "c1", choices: [{ index: 0, delta, finish_reason: finish }], ...more };
}

/** A member of a member. */
export function get(value: Json | undefined, ...path: (string | number)[]): Json | undefined {
  return path.reduce<Json | undefined>((at, name) => {
    if (Array.isArray(at)) return at.at(Number(name));
    return isObject(at) ? at[name] : undefined;
  }, value);
}

/** A list, as one. */
export function list(value: Json | undefined): Json[] {
  return Array.isArray(value) ? value : [];
}
