import { assertEquals } from "@std/assert";
import { aggregateEvents, eventsOf } from "../../../lib/protocols/canonical/aggregate_events.ts";
import { checkGrammar } from "./event_grammar.ts";
import type { Reply } from "../../../lib/protocols/canonical/types.ts";

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
