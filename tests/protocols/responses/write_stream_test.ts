import { assertEquals } from "@std/assert";
import { eventsOf } from "../../../lib/protocols/canonical/aggregate_events.ts";
import { checkGrammar } from "../canonical/event_grammar.ts";
import type { Prompt, ReplyEvent } from "../../../lib/protocols/canonical/types.ts";
import { GatewayError } from "../../../lib/errors.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import type { Frame } from "../../../lib/protocols/codec.ts";
import { responses } from "../../../lib/protocols/responses/mod.ts";
import { accumulate, parseFrames } from "./accumulate.ts";
import { inPieces, REPLIES, responseContextOf } from "./replies.ts";

/** The frames written for these events, after a check of their order. */
function write(events: ReplyEvent[], prompt: Partial<Prompt> = {}): Frame[] {
  const grammar = checkGrammar();
  const writer = responses.writer(responseContextOf(prompt));
  const frames = events.flatMap((event) => grammar.push(event)).flatMap((event) => writer.push(event));
  return [...frames, ...writer.end()];
}

Deno.test("a stream equals the response of writeReply(), with text split anywhere", () => {
  for (const { name, reply, prompt } of REPLIES) {
    const whole = responses.writeReply(reply, responseContextOf(prompt));
    for (const events of [eventsOf(reply), inPieces(eventsOf(reply))]) {
      const { built, last, error } = accumulate(write(events, prompt));
      assertEquals(last, whole, name);
      assertEquals(built, whole, name);
      assertEquals(error, undefined, name);
    }
  }
});

Deno.test("writer() writes a text answer exactly", () => {
  const frames = write([
    { type: "start", id: "up_1" },
    { type: "open", index: 0, block: { type: "text" } },
    { type: "delta", index: 0, text: "Hi" },
    { type: "close", index: 0 },
    { type: "finish", reason: "end", usage: { prompt: 3, completion: 1 } },
  ]);
  const item = { type: "message", id: "msg_r1_0", status: "in_progress", role: "assistant", content: [] };
  const part = { type: "output_text", text: "", annotations: [], logprobs: [] };
  const at = { item_id: "msg_r1_0", output_index: 0, content_index: 0 };
  const full = { ...part, text: "Hi" };
  const done = { ...item, status: "completed", content: [full] };
  assertEquals(parseFrames(frames).slice(2, -1), [
    { type: "response.output_item.added", sequence_number: 2, output_index: 0, item },
    { type: "response.content_part.added", sequence_number: 3, ...at, part },
    { type: "response.output_text.delta", sequence_number: 4, ...at, delta: "Hi", logprobs: [] },
    { type: "response.output_text.done", sequence_number: 5, ...at, text: "Hi", logprobs: [] },
    { type: "response.content_part.done", sequence_number: 6, ...at, part: full },
    { type: "response.output_item.done", sequence_number: 7, output_index: 0, item: done },
  ]);
});

Deno.test("writer() writes a call exactly, with empty arguments as an empty object", () => {
  const item = {
    type: "function_call",
    id: "fc_r1_0",
    call_id: "call_1",
    name: "now",
    arguments: "",
    status: "in_progress",
  };
  const at = { item_id: "fc_r1_0", output_index: 0 };
  const frames = write([
    { type: "start" },
    { type: "open", index: 0, block: { type: "tool_call", id: "call_1", name: "now" } },
    { type: "close", index: 0 },
    { type: "finish", reason: "tool_use", usage: {} },
  ]);
  assertEquals(parseFrames(frames).slice(2, -1), [
    { type: "response.output_item.added", sequence_number: 2, output_index: 0, item },
    { type: "response.function_call_arguments.delta", sequence_number: 3, ...at, delta: "{}" },
    { type: "response.function_call_arguments.done", sequence_number: 4, ...at, name: "now", arguments: "{}" },
    {
      type: "response.output_item.done",
      sequence_number: 5,
      output_index: 0,
      item: { ...item, arguments: "{}", status: "completed" },
    },
  ]);
});

Deno.test("every frame has the name of its event and no line break", () => {
  const frames = write(eventsOf({ blocks: [{ type: "text", text: "a\nb\r\n\u2028" }], finish: "end", usage: {} }));
  for (const { data } of frames) assertEquals(/[\r\n]/.test(data), false);
  assertEquals(frames.filter(({ event }) => event === undefined), [{ data: "[DONE]" }]);
});

Deno.test("writer() writes frames for each event at once", () => {
  const writer = responses.writer(responseContextOf());
  const counts = eventsOf({ blocks: [{ type: "text", text: "Hi" }], finish: "end", usage: {} })
    .map((event) => writer.push(event).length);
  // start: created, in_progress; open; delta: item, part, delta; close; finish: two dones, item, completed, [DONE]
  assertEquals(counts, [2, 0, 3, 0, 5]);
  assertEquals(writer.end(), []);
});

const BROKEN = new GatewayError("overloaded", "The model is busy", { code: "overloaded" });

Deno.test("an early error still makes a complete stream", () => {
  const cases: [error: GatewayError, code: string][] = [
    [BROKEN, "overloaded"],
    [new GatewayError("exhausted", "Too many"), "rate_limit_exceeded"],
    [new GatewayError("invalid", "Bad"), "invalid_prompt"],
    [new GatewayError("internal", "Bad"), "internal_error"],
  ];
  for (const [error, code] of cases) {
    const { last, types } = accumulate(write([{ type: "error", error }]));
    assertEquals(types, ["response.created", "response.in_progress", "error", "response.failed"]);
    assertEquals(last.error, { code, message: error.message });
    assertEquals(last.output, []);
  }
});

Deno.test("a truncated stream is an error, never a clean end", () => {
  const { reply } = REPLIES[0] ?? { reply: { blocks: [], finish: "end", usage: {} } };
  const events = eventsOf(reply);
  for (let length = 0; length < events.length; length++) {
    const writer = responses.writer(responseContextOf());
    const frames = events.slice(0, length).flatMap((event) => writer.push(event));
    const { last, error } = accumulate([...frames, ...writer.end()]);
    assertEquals(last.status, "failed");
    assertEquals((error?.error as JsonObject).code, "upstream_error");
    assertEquals(writer.end(), []);
  }
});
