import { assertEquals } from "@std/assert";
import { aggregateEvents, eventsOf } from "../../../lib/protocols/canonical/aggregate_events.ts";
import { checkGrammar } from "../canonical/event_grammar.ts";
import type { Reply, ReplyEvent } from "../../../lib/protocols/canonical/types.ts";
import { GatewayError } from "../../../lib/errors.ts";
import type { Json, JsonObject } from "../../../lib/json/mod.ts";
import type { Frame } from "../../../lib/protocols/codec.ts";
import { chat } from "../../../lib/protocols/chat/mod.ts";
import { accumulate, chunksOf } from "./accumulate.ts";
import { REPLIES } from "./replies.ts";
import { echoOf, request } from "./requests.ts";

const STREAM = { stream: true, stream_options: { include_usage: true } };

/** Checks the order of the events, then writes them. */
function stream(events: readonly ReplyEvent[], members: JsonObject = STREAM): Frame[] {
  const grammar = checkGrammar();
  const machine = chat.writer(echoOf(request(members)));
  return [...events.flatMap((event) => grammar.push(event)).flatMap((event) => machine.push(event)), ...machine.end()];
}

/** The same events with each text in pieces of one UTF-16 unit. */
function inPieces(events: readonly ReplyEvent[]): ReplyEvent[] {
  return events.flatMap((event) =>
    event.type === "delta" ? event.text.split("").map((text): ReplyEvent => ({ ...event, text })) : [event]
  );
}

function chunk(delta: JsonObject, finish: string | null = null): JsonObject {
  return {
    id: "chatcmpl-r1",
    object: "chat.completion.chunk",
    created: 1_790_000_000,
    model: "acme/thinker",
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
    usage: null,
  };
}

function deltasOf(frames: readonly Frame[]): Json[] {
  return chunksOf(frames).flatMap(({ choices }) => Array.isArray(choices) ? choices : [])
    .map((choice) => (choice as { delta: JsonObject }).delta);
}

function replyOf(name: string): Reply {
  const reply = REPLIES[name];
  if (reply === undefined) throw new RangeError(`Cannot find the answer "${name}"`);
  return reply;
}

Deno.test("writer() writes text like a recorded stream", () => {
  const frames = stream([
    { type: "start" },
    { type: "open", index: 0, block: { type: "text" } },
    { type: "delta", index: 0, text: "Hel" },
    { type: "delta", index: 0, text: "lo\n" },
    { type: "close", index: 0 },
    { type: "finish", reason: "end", usage: { prompt: 16, completion: 3 } },
  ]);
  const { id, object, created, model } = chunk({});
  const { usage } = chat.writeReply(replyOf("text"), echoOf(request()));
  assertEquals<unknown>(chunksOf(frames), [
    chunk({ role: "assistant", content: "", refusal: null }),
    chunk({ content: "Hel" }),
    chunk({ content: "lo\n" }),
    chunk({}, "stop"),
    { id, object, created, model, choices: [], usage },
  ]);
  assertEquals(frames.every((frame) => frame.event === undefined && !frame.data.includes("\n")), true);
});

Deno.test("writer() sends usage only on request", () => {
  for (const members of [{ stream: true }, { stream: true, stream_options: { include_usage: false } }]) {
    const chunks = chunksOf(stream(eventsOf(replyOf("text")), members));
    assertEquals(chunks.length, 3);
    assertEquals(chunks.some((chunk) => "usage" in chunk), false);
  }
});

Deno.test("writer() opens each call once, then adds arguments", () => {
  assertEquals<unknown>(deltasOf(stream(eventsOf(replyOf("textAroundCalls")))), [
    { role: "assistant", content: "", refusal: null },
    { content: "Let me see. " },
    { tool_calls: [{ index: 0, id: "call_A1", type: "function", function: { name: "add", arguments: "" } }] },
    { tool_calls: [{ index: 0, function: { arguments: '{"x":1}' } }] },
    { tool_calls: [{ index: 1, id: "call_A2", type: "function", function: { name: "add", arguments: "" } }] },
    { tool_calls: [{ index: 1, function: { arguments: '{"x":2}' } }] },
    { content: "Done." },
    {},
  ]);
  assertEquals<unknown>(deltasOf(stream(eventsOf(replyOf("customCalls")))), [
    { role: "assistant", content: null, refusal: null },
    { tool_calls: [{ index: 0, id: "call_A1", type: "custom", custom: { name: "sql", input: "" } }] },
    { tool_calls: [{ index: 0, custom: { input: "select 1" } }] },
    { tool_calls: [{ index: 1, id: "call_A2", type: "custom", custom: { name: "sql", input: "" } }] },
    {},
  ]);
});

Deno.test("writer() gives a call without arguments an empty object", () => {
  const frames = stream([
    { type: "start" },
    { type: "open", index: 0, block: { type: "tool_call", id: "c1", name: "now" } },
    { type: "close", index: 0 },
    { type: "finish", reason: "tool_use", usage: {} },
  ]);
  assertEquals<unknown>(deltasOf(frames), [
    { role: "assistant", content: null, refusal: null },
    { tool_calls: [{ index: 0, id: "c1", type: "function", function: { name: "now", arguments: "" } }] },
    { tool_calls: [{ index: 0, function: { arguments: "{}" } }] },
    {},
  ]);
});

Deno.test("writer() streams reasoning as text and sends details in the last delta only", () => {
  const deltas = deltasOf(stream(inPieces(eventsOf(replyOf("reasoning")))));
  assertEquals(deltas[0], { role: "assistant", content: null, refusal: null });
  const last = deltas.at(-1);
  const carriers = deltas.filter((delta) => JSON.stringify(delta).includes("reasoning_details"));
  assertEquals(carriers, [last]);
});

Deno.test("writer() streams a function_call to a request with functions", () => {
  const frames = stream(eventsOf(replyOf("callWithoutArguments")), { ...STREAM, functions: [{ name: "now" }] });
  assertEquals<unknown>(deltasOf(frames), [
    { role: "assistant", content: null, refusal: null },
    { function_call: { name: "now", arguments: "" } },
    { function_call: { arguments: "{}" } },
    {},
  ]);
});

Deno.test("writer() agrees with writeReply()", () => {
  const variants: JsonObject[] = [
    {},
    { reasoning: { exclude: true } },
    { functions: [{ name: "add" }, { name: "now" }] },
  ];
  for (const [name, reply] of Object.entries(REPLIES)) {
    assertEquals(aggregateEvents(eventsOf(reply)), reply, name);
    for (const members of variants) {
      if ("functions" in members && name === "customCalls") continue; // functions are never custom tools
      const whole = chat.writeReply(reply, echoOf(request(members)));
      for (const events of [eventsOf(reply), inPieces(eventsOf(reply))]) {
        assertEquals(accumulate(stream(events, { ...STREAM, ...members })), whole, name);
      }
    }
  }
});

const overloaded: ReplyEvent = {
  type: "error",
  error: new GatewayError("overloaded", "The model is overloaded", { cause: new Error("secret") }),
};
const failure = {
  error: { message: "The model is overloaded", type: "server_error", param: null, code: "overloaded" },
};

Deno.test("writer() ends with an error at any point, without an end mark", () => {
  const begun: ReplyEvent[] = [
    { type: "start" },
    { type: "open", index: 0, block: { type: "text" } },
    { type: "delta", index: 0, text: "Hel" },
  ];
  const cases: [events: ReplyEvent[], before: number][] = [[[overloaded], 0], [[{ type: "start" }, overloaded], 0], [
    [...begun, overloaded],
    2,
  ]];
  for (const [events, before] of cases) {
    const frames = stream(events);
    assertEquals(frames.length, before + 1);
    assertEquals(JSON.parse(frames.at(-1)?.data ?? ""), failure);
  }
});

Deno.test("writer() ends a truncated stream with an error", () => {
  const whole = eventsOf(replyOf("textAroundCalls"));
  for (let length = 0; length < whole.length; length++) {
    const frames = stream(whole.slice(0, length));
    assertEquals(JSON.parse(frames.at(-1)?.data ?? ""), {
      error: {
        message: "The model's answer ended before it was complete",
        type: "server_error",
        param: null,
        code: "upstream_error",
      },
    });
    assertEquals(frames.some(({ data }) => data === "[DONE]"), false);
  }
});

Deno.test("writer() writes nothing after the end", () => {
  for (const end of [eventsOf(replyOf("text")).slice(-1), [overloaded]].flat()) {
    const machine = chat.writer(echoOf(request(STREAM)));
    machine.push({ type: "start" });
    machine.push(end);
    assertEquals(machine.push({ type: "open", index: 0, block: { type: "text" } }), []);
    assertEquals(machine.push(overloaded), []);
    assertEquals(machine.end(), []);
  }
});
