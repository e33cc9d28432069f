/** Laws for every protocol, every recorded stream and every pair of protocols. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { aggregateEvents, eventsOf } from "../../lib/protocols/canonical/aggregate_events.ts";
import { checkGrammar } from "./canonical/event_grammar.ts";
import type { Protocol, ReplyEvent } from "../../lib/protocols/canonical/types.ts";
import { formatFrame, SseReader } from "../../lib/server/sse.ts";
import { isObject, type JsonObject, parseJson } from "../../lib/json/mod.ts";
import type { Frame } from "../../lib/protocols/codec.ts";
import { UPSTREAM_CODECS } from "../../lib/upstreams/protocols.ts";
import { CLIENTS, PROTOCOLS, responseContextOf, sideOf } from "../golden/crossings.ts";
import { readEvents, RECORDED, type RecordedStream } from "../golden/recorded.ts";
import { crossRequest, REQUESTS } from "../golden/requests.ts";
import { readBack, replayBlocks, replyOf, signatures, summarizeReply, writeFrames } from "../golden/round_trips.ts";
import { accumulate as accumulateChat } from "./chat/accumulate.ts";
import { accumulate as accumulatePieces } from "./gemini/accumulate.ts";
import { signedBefore } from "./gemini/recorded_streams.ts";
import { accumulate } from "./messages/accumulate.ts";
import { accumulate as accumulateResponse } from "./responses/accumulate.ts";
import { wholeOf } from "./whole_answers.ts";
import { randomAnswer } from "./translate/random_prompt.ts";
import { rounds, skipInQuick } from "../support/skip.ts";

const SEEDS = Array.from({ length: rounds(300) }, (_, seed) => seed);

/** Names a stream in a failure message. */
function at({ protocol, name }: RecordedStream, more = ""): string {
  return `${protocol}: ${name}${more}`;
}

Deno.test("reading and writing a request in its own protocol is idempotent", () => {
  for (const { name, from, bodies } of REQUESTS) {
    for (const [variant, body] of Object.entries(bodies)) {
      const once = cross(from, body);
      if (once === undefined) continue;
      const twice = cross(from, { ...once, model: body.model });
      assertEquals(JSON.stringify(twice), JSON.stringify(once), `${from}: ${name} ${variant}`);
    }
  }
});

/** Translates a request into its own protocol; undefined if it is refused. */
function cross(from: Protocol, body: JsonObject): JsonObject | undefined {
  try {
    return crossRequest(from, from, body).body;
  } catch {
    return undefined;
  }
}

Deno.test("unknown members survive in their own protocol, with the spelling of numbers", () => {
  for (const { name, from, bodies } of REQUESTS) {
    if (name !== "others") continue;
    const { body, dropped } = crossRequest(from, from, bodies[""] ?? {});
    assertEquals(JSON.stringify(body.vendor_member), JSON.stringify(bodies[""]?.vendor_member), from);
    assert(body.vendor_member !== undefined && !dropped.includes("vendor_member"), from);
  }
});

Deno.test("events obey the grammar wherever a stream is cut", () => {
  for (const recorded of RECORDED) {
    for (let length = 0; length <= recorded.frames.length; length++) {
      const reader = UPSTREAM_CODECS[recorded.protocol].reader({ issuer: "x" });
      const grammar = checkGrammar();
      const frames = recorded.frames.slice(0, length);
      const events = [...frames.flatMap((frame) => reader.push(frame)), ...reader.end()];
      for (const event of events) grammar.push(event);
      grammar.end();
      const ends = events.filter(({ type }) => type === "finish" || type === "error");
      assertEquals([ends.length, events.at(-1)], [1, ends[0]], at(recorded, ` after ${length}`));
    }
  }
});

Deno.test("a stream aggregates to the whole answer", () => {
  let compared = 0;
  for (const recorded of RECORDED) {
    const body = wholeOf(recorded);
    if (body === undefined) continue;
    const { protocol } = recorded;
    const origin = { issuer: sideOf(protocol).issuer };
    const reader = UPSTREAM_CODECS[protocol].reader(origin);
    const streamed = aggregateEvents([...recorded.frames.flatMap((frame) => reader.push(frame)), ...reader.end()]);
    const expected = UPSTREAM_CODECS[protocol].readReply(body, origin);
    assertEquals(protocol === "gemini" ? signedBefore(streamed) : streamed, expected, at(recorded));
    compared++;
  }
  assert(compared > 60, `${compared} streams have a whole answer`);
});

Deno.test("content, finish reason and usage survive every translation", () => {
  for (const recorded of RECORDED) {
    const events = readEvents(recorded);
    const reply = replyOf(events);
    if (reply === undefined) continue;
    for (const client of PROTOCOLS) {
      const back = aggregateEvents(readBack(writeFrames(events, client), client));
      assertEquals(summarizeReply(back, client), summarizeReply(reply, client), at(recorded, ` to ${client}`));
    }
  }
});

Deno.test("random answers survive every translation", () => {
  for (const seed of SEEDS) {
    const events = randomAnswer(seed, [{ name: "get_weather" }, { name: "patch", custom: true }]);
    const reply = aggregateEvents(events);
    const ids = reply.blocks.flatMap((block) => block.type === "tool_call" ? [block.id] : []);
    if (new Set(ids).size < ids.length) continue;
    for (const client of PROTOCOLS) {
      const back = aggregateEvents(readBack(writeFrames(events, client), client));
      assertEquals(summarizeReply(back, client), summarizeReply(reply, client), `seed ${seed} to ${client}`);
      assertEquals(signatures(replayBlocks(reply, client)), signatures(reply.blocks), `seed ${seed} to ${client}`);
    }
  }
});

Deno.test("signatures come back from every client in their order", () => {
  for (const recorded of RECORDED) {
    const reply = replyOf(readEvents(recorded));
    if (reply === undefined) continue;
    for (const client of PROTOCOLS) {
      // Unknown blocks are passed to the client, but rejected when they come back.
      if (client === "messages" && recorded.name === "unknown") continue;
      assertEquals(signatures(replayBlocks(reply, client)), signatures(reply.blocks), at(recorded, ` to ${client}`));
    }
  }
});

Deno.test("eventsOf() and aggregateEvents() are inverse", () => {
  const replies = [
    ...RECORDED.map((recorded) => replyOf(readEvents(recorded))),
    ...SEEDS.map((seed) => aggregateEvents(randomAnswer(seed))),
  ];
  for (const reply of replies) if (reply !== undefined) assertEquals(aggregateEvents(eventsOf(reply)), reply);
});

/** Variants of the same frames on the wire. */
const WIRES: Readonly<Record<string, (text: string) => string>> = {
  plain: (text) => text,
  "CRLF and a byte order mark": (text) => `\ufeff${text.replaceAll("\n", "\r\n")}`,
  "comments and fields nobody knows": (text) =>
    `: hello\n\n${text.replaceAll("\n\n", "\nid: 7\nretry: 9\n\n: ping 👋\n")}`,
  "no space after the colon": (text) => text.replaceAll(/^(data|event): (?! )/gm, "$1:"),
};

Deno.test("events do not depend on how the bytes are split", () => {
  const few = skipInQuick("Most sizes of pieces");
  for (const recorded of RECORDED) {
    const expected = read(recorded, recorded.frames);
    for (const [index, [wire, dress]] of Object.entries(WIRES).entries()) {
      const bytes = new TextEncoder().encode(dress(recorded.frames.map(formatFrame).join("")));
      for (const size of few ? [index % 2 === 0 ? 1 : 7] : [1, 2, 7, 64, 1000]) {
        const frames = framesOf(bytes, size);
        assertEquals(read(recorded, frames), expected, at(recorded, `, ${wire}, ${size} bytes at a time`));
      }
    }
  }
});

function framesOf(bytes: Uint8Array, size: number): Frame[] {
  const decoder = new TextDecoder();
  const reader = new SseReader();
  const frames: Frame[] = [];
  for (let start = 0; start < bytes.length; start += size) {
    frames.push(...reader.push(decoder.decode(bytes.subarray(start, start + size), { stream: true })));
  }
  return [...frames, ...reader.push(decoder.decode()), ...reader.end()];
}

/** Returns events, with errors as plain values. */
function read({ protocol }: RecordedStream, frames: readonly Frame[]): unknown[] {
  const reader = UPSTREAM_CODECS[protocol].reader({ issuer: "x" });
  const events: ReplyEvent[] = [...frames.flatMap((frame) => reader.push(frame)), ...reader.end()];
  return events.map((event) =>
    event.type === "error" ? { kind: event.error.kind, message: event.error.message } : event
  );
}

/** Frames that end a stream successfully. */
const CLEAN = /^\[DONE\]$|"message_stop"|"response\.(?:completed|incomplete)"|"finishReason":/;
/** Frames that report a failure. */
const FAILED = {
  chat: /^\{"error":/,
  messages: /^\{"type":"error"/,
  responses: /^\{"type":"response\.failed"/,
  gemini: /^\{"error":/,
};

Deno.test("a cut stream is an error in every client protocol", () => {
  let cuts = 0;
  const step = skipInQuick("Three of four places at which a stream is cut") ? 4 : 1;
  for (const [index, recorded] of RECORDED.entries()) {
    for (let length = index % step; length < recorded.frames.length; length += step) {
      const events = readEvents({ protocol: recorded.protocol, frames: recorded.frames.slice(0, length) });
      if (events.at(-1)?.type === "finish") continue;
      for (const client of PROTOCOLS) {
        const frames = writeFrames(events, client).map(({ data }) => data);
        const where = at(recorded, ` to ${client} after ${length}`);
        const answer = frames.filter((data) => !(client === "responses" && data === "[DONE]"));
        assertEquals(answer.filter((data) => CLEAN.test(data)), [], where);
        assert(FAILED[client].test(answer.at(-1) ?? ""), where);
        cuts++;
      }
      assertThrows(() => aggregateEvents(events));
    }
  }
  assert(cuts > 1_000 / step, `${cuts} cuts`);
});

Deno.test("the finish reason is tool use exactly if there are calls, and every call has arguments", () => {
  const reasons = { chat: "tool_calls", messages: "tool_use", responses: "completed" };
  for (const recorded of RECORDED) {
    const events = readEvents(recorded);
    const reply = replyOf(events);
    if (reply === undefined) continue;
    const calls = reply.blocks.filter((block) => block.type === "tool_call");
    const byTools = reply.finish === "tool_use";
    assertEquals(byTools, calls.length > 0 && reply.finish !== "length", at(recorded));
    for (const call of calls) {
      if (call.custom === true || reply.finish === "length") continue;
      assert(isObject(parseJson(call.arguments)) || !recorded.name.includes("blank"), at(recorded));
      assert(call.name.trim() !== "" && call.arguments.trim() !== "", at(recorded));
    }
    for (const client of ["chat", "messages"] as const) {
      const reported = writeFrames(events, client).some(({ data }) => data.includes(`_reason":"${reasons[client]}"`));
      assertEquals(reported, byTools, at(recorded, ` to ${client}`));
    }
  }
});

Deno.test("SDKs accumulate a stream to the whole answer", () => {
  for (const recorded of RECORDED) {
    const events = readEvents(recorded);
    const reply = replyOf(events);
    // Incomplete input becomes an object in whole answers only.
    if (reply === undefined || reply.finish === "length") continue;
    for (const client of PROTOCOLS) {
      const frames = writeFrames(events, client);
      const whole = CLIENTS[client].writeReply(reply, responseContextOf(client));
      assertEquals(plain(puttingTogether(frames, client)), plain(whole), at(recorded, ` to ${client}`));
    }
  }
});

/** Accumulates a stream as the protocol's official SDK does. */
function puttingTogether(frames: Frame[], client: Protocol): JsonObject {
  switch (client) {
    case "chat":
      return accumulateChat(frames);
    case "messages":
      return accumulate(frames);
    case "responses":
      return accumulateResponse(frames).built;
    case "gemini":
      return accumulatePieces(frames);
  }
}

/** Normalizes numbers, and removes null members, which a stream does not have. */
function plain(value: JsonObject): unknown {
  return JSON.parse(JSON.stringify(value), (_key, member) => member === null ? undefined : member);
}

Deno.test("every codec has the name of its protocol", () => {
  assertEquals(Object.values(CLIENTS).map(({ protocol }) => protocol), [...PROTOCOLS]);
});
