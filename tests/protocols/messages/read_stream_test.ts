import { assert, assertEquals, assertThrows } from "@std/assert";
import { aggregateEvents } from "../../../lib/protocols/canonical/aggregate_events.ts";
import { checkGrammar } from "../canonical/event_grammar.ts";
import type { ReplyEvent } from "../../../lib/protocols/canonical/types.ts";
import { GatewayError } from "../../../lib/errors.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import type { Frame } from "../../../lib/protocols/codec.ts";
import { messagesUpstream } from "../../../lib/protocols/messages/upstream.ts";
import { workedMs } from "../../support/turns.ts";
import { ANSWERS, fixtureNames, framesOf, ORIGIN } from "./upstream_answers.ts";

Deno.test("every stream in the fixtures is listed", async () => {
  assertEquals(Object.keys(ANSWERS).sort(), await fixtureNames());
});

for (const [name, content] of Object.entries(ANSWERS)) {
  Deno.test(`reader() reads ${name}`, async () => {
    const events = read(await framesOf(name));
    checkEvents(events);
    if (!("error" in content)) return assertEquals(aggregateEvents(events), content);
    const last = events.at(-1);
    assert(last?.type === "error");
    assertEquals([last.error.kind, last.error.message], [content.error, content.message]);
    assertEquals(textOf(events), content.text ?? "");
  });
}

Deno.test("reader() emits each piece at once", async () => {
  const machine = messagesUpstream.reader(ORIGIN);
  const sizes = (await framesOf("tools")).map((frame) => machine.push(frame).map(({ type }) => type).join("+"));
  assertEquals(sizes, [
    ...["start", "", "open+delta", "close"],
    ...["open", "", "delta", "delta", "close"],
    ...["open", "", "close"],
    ...["open", "close"],
    ...["", "finish"],
  ]);
});

Deno.test("reader() reports the known input at the start", async () => {
  const [first] = read(await framesOf("text"));
  const usage = { prompt: 12, input_cache_read: 0, input_cache_write_5m: 0, input_cache_write_1h: 0 };
  assertEquals(first, { type: "start", id: "msg_a1", usage });
});

Deno.test("readReply() accepts a message with null members", () => {
  const message = { id: null, content: [null, { type: null }], stop_reason: null, usage: null };
  assertEquals(messagesUpstream.readReply(message, ORIGIN), { blocks: [], finish: "end", usage: {} });
});

Deno.test("readReply() rejects other objects", () => {
  const error = assertThrows(() => messagesUpstream.readReply({}, ORIGIN), GatewayError);
  assertEquals([error.kind, error.message], [
    "upstream",
    "Cannot read the upstream's answer: it has no content",
  ]);
  const body = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } };
  assertEquals(assertThrows(() => messagesUpstream.readReply(body, ORIGIN), GatewayError).kind, "overloaded");
  const other = { error: { type: "invalid_request_error", message: "max_tokens: too large" } };
  assertEquals(assertThrows(() => messagesUpstream.readReply(other, ORIGIN), GatewayError).kind, "invalid");
});

Deno.test("reader() accepts events with a name only, and chat's end mark", async () => {
  const frames = (await framesOf("text")).map(({ event, data }): Frame => ({
    event: event ?? "",
    data: data.replace(/"type":"\w+",?/, ""),
  }));
  assertEquals(aggregateEvents(read([...frames, { data: "[DONE]" }, { data: "" }])), ANSWERS.text);
});

Deno.test("reader() ends with an error for an event that is not a JSON object", async () => {
  const frames = await framesOf("text");
  for (const data of ["{", "null", "7", '"x"', "[]", "<html>", '{"type":"ping","type":"ping"}', "[".repeat(100)]) {
    const events = read([...frames.slice(0, 4), { event: "x", data }, ...frames.slice(4)]);
    checkEvents(events);
    const last = events.at(-1);
    assert(last?.type === "error", data);
    assertEquals(last.error.message, "Cannot read the upstream's answer: an event is not a JSON object", data);
  }
});

Deno.test("reader() keeps bounded memory", () => {
  const text = "x".repeat(1024 * 1024);
  const start = (index: number, type: string) => frame({ type: "content_block_start", index, content_block: { type } });
  const delta = frame({ type: "content_block_delta", index: 1, delta: { type: "text_delta", text } });
  const cases: [what: string, frames: Frame[]][] = [
    ["it is too long", [start(0, "text"), start(1, "text"), ...Array<Frame>(20).fill(delta)]],
    ["it has too many blocks", Array.from({ length: 5000 }, (_, index) => start(index, "text"))],
  ];
  for (const [what, frames] of cases) {
    const events = read(frames);
    checkEvents(events);
    const event = events.at(-1);
    assert(event?.type === "error");
    assertEquals(event.error.message, `Cannot read the upstream's answer: ${what}`);
  }
  // Events that need not wait are not buffered.
  const passed = read([start(1, "text"), ...Array<Frame>(40).fill(delta), frame({ type: "message_stop" })]);
  assertEquals(passed.at(-1)?.type, "finish");
});

function read(frames: readonly Frame[]): ReplyEvent[] {
  const machine = messagesUpstream.reader(ORIGIN);
  return [...frames.flatMap((frame) => machine.push(frame)), ...machine.end()];
}

/** Throws unless the events are in order and end correctly, with an error that clients may see. */
function checkEvents(events: readonly ReplyEvent[]): void {
  const grammar = checkGrammar();
  for (const event of events) grammar.push(event);
  grammar.end();
  const last = events.at(-1);
  if (last?.type === "error" && last.error.kind === "internal") throw last.error.cause ?? last.error;
}

function textOf(events: readonly ReplyEvent[]): string {
  return events.map((event) => event.type === "delta" ? event.text : "").join("");
}

function frame(body: { type: string; [name: string]: unknown }): Frame {
  return { event: body.type, data: JSON.stringify(body) };
}

Deno.test("reader() makes up ids of calls in linear time", () => {
  const machine = messagesUpstream.reader(ORIGIN);
  const push = (data: JsonObject) => machine.push({ data: JSON.stringify(data) } as Frame);
  push({ type: "message_start", message: { id: `msg_${"x".repeat(4_000_000)}`, usage: { input_tokens: 1 } } });
  const started = workedMs();
  for (let index = 0; index < 500; index++) {
    push({ type: "content_block_start", index, content_block: { type: "tool_use", name: "f", input: {} } });
    push({ type: "content_block_stop", index });
  }
  assert(workedMs() - started < 1_000);
});
