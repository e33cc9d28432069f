import { assertEquals, assertThrows } from "@std/assert";
import { aggregateEvents, eventsOf, ReplyAggregator } from "../../../lib/protocols/canonical/aggregate_events.ts";
import { checkGrammar } from "./event_grammar.ts";
import type { Reply, ReplyEvent } from "../../../lib/protocols/canonical/types.ts";
import { GatewayError } from "../../../lib/errors.ts";

const replies: [string, Reply][] = [
  ["nothing", { blocks: [], finish: "end", usage: {} }],
  ["text", { id: "r1", blocks: [{ type: "text", text: "Hi" }], finish: "end", usage: { prompt: 1, completion: 1 } }],
  ["empty text", { blocks: [{ type: "text", text: "" }], finish: "end", usage: {} }],
  ["stop sequence", {
    blocks: [{ type: "text", text: "a" }],
    finish: "stop_sequence",
    stopSequence: "END",
    usage: { completion: 1 },
  }],
  ["citations", {
    blocks: [{ type: "text", text: "a", citations: [{ from: "messages", value: { type: "char_location" } }] }],
    finish: "end",
    usage: {},
  }],
  ["reasoning, shown and hidden", {
    blocks: [
      { type: "reasoning", text: "hm", signature: { issuer: "x", value: "s", id: "rs_1" } },
      { type: "reasoning", text: "", hidden: true, signature: { issuer: "x", value: "t" } },
      { type: "reasoning", text: "unsigned" },
    ],
    finish: "length",
    usage: { completion: 3, reasoning: 3 },
  }],
  ["calls", {
    blocks: [
      { type: "text", text: "calling" },
      { type: "tool_call", id: "c1", name: "a", arguments: '{"id":12345678901234567890}' },
      { type: "tool_call", id: "c2", name: "b", arguments: "", custom: true, namespace: "n" },
    ],
    finish: "tool_use",
    usage: {},
  }],
  ["refusal", { blocks: [{ type: "refusal", text: "no" }], finish: "refusal", usage: {} }],
  ["vendor_specific", {
    blocks: [{ type: "vendor_specific", from: "responses", value: { type: "web_search_call" } }, {
      type: "text",
      text: "x",
    }],
    finish: "end",
    usage: {},
  }],
];

Deno.test("aggregateEvents() reverses eventsOf(), whose events obey the grammar", () => {
  for (const [name, reply] of replies) {
    const events = eventsOf(reply);
    assertEquals(aggregateEvents(events), reply, name);
    const grammar = checkGrammar();
    assertEquals(events.flatMap((event) => grammar.push(event)), events, name);
    grammar.end();
  }
});

Deno.test("aggregateEvents() joins deltas block by block", () => {
  const events: ReplyEvent[] = [
    { type: "start" },
    { type: "open", index: 0, block: { type: "text" } },
    { type: "delta", index: 0, text: "a" },
    { type: "delta", index: 0, text: "b" },
    { type: "close", index: 0 },
    { type: "open", index: 1, block: { type: "text" } },
    { type: "delta", index: 1, text: "c" },
    { type: "close", index: 1 },
    { type: "finish", reason: "end", usage: {} },
  ];
  assertEquals(aggregateEvents(events).blocks, [{ type: "text", text: "ab" }, { type: "text", text: "c" }]);
});

Deno.test("aggregateEvents() makes empty arguments an object, except for a custom tool", () => {
  const events = (custom: boolean): ReplyEvent[] => [
    { type: "start" },
    { type: "open", index: 0, block: { type: "tool_call", id: "c", name: "t", ...(custom && { custom }) } },
    { type: "close", index: 0 },
    { type: "finish", reason: "tool_use", usage: {} },
  ];
  assertEquals(aggregateEvents(events(false)).blocks, [{ type: "tool_call", id: "c", name: "t", arguments: "{}" }]);
  assertEquals(aggregateEvents(events(true)).blocks, [{
    type: "tool_call",
    id: "c",
    name: "t",
    custom: true,
    arguments: "",
  }]);
});

Deno.test("aggregateEvents() of a truncated stream is an upstream error", () => {
  const events = eventsOf({ blocks: [{ type: "text", text: "abc" }], finish: "end", usage: {} });
  for (let length = 0; length < events.length; length++) {
    const error = assertThrows(() => aggregateEvents(events.slice(0, length)), GatewayError);
    assertEquals(error.kind, "upstream");
  }
});

Deno.test("ReplyAggregator throws the error that ended the stream", () => {
  const folder = new ReplyAggregator();
  const error = new GatewayError("overloaded", "Busy");
  folder.push({ type: "start" });
  assertEquals(assertThrows(() => folder.push({ type: "error", error }), GatewayError), error);
});

Deno.test("eventsOf() rejects blocks that answers cannot have", () => {
  assertThrows(
    () => eventsOf({ blocks: [{ type: "tool_result", callId: "c", blocks: [] }], finish: "end", usage: {} }),
    TypeError,
    'Cannot put a block of type "tool_result"',
  );
});
