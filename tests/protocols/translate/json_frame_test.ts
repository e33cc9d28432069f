import { assertEquals } from "@std/assert";
import { aggregateEvents, eventsOf } from "../../../lib/protocols/canonical/aggregate_events.ts";
import type { ReplyEvent } from "../../../lib/protocols/canonical/types.ts";
import { unwrapAnswer, wrapSchema } from "../../../lib/protocols/translate/json_frame.ts";

/** The text that the transform makes of a text that arrives in pieces of this size. */
function unwrapped(text: string, size: number): unknown {
  const transform = unwrapAnswer();
  const events = eventsOf({ blocks: [{ type: "text", text }], finish: "end", usage: {} }).flatMap((event) => {
    if (event.type !== "delta") return [event];
    const pieces = text.match(new RegExp(`[^]{1,${size}}`, "g")) ?? [];
    return pieces.map((piece): ReplyEvent => ({ ...event, text: piece }));
  });
  const { blocks: [block] } = aggregateEvents(events.flatMap((event) => transform(event)));
  return block?.type === "text" ? block.text : block;
}

Deno.test("unwrapAnswer() takes the answer out of its object, wherever the text is cut", () => {
  const refusal = `I cannot answer. ${"Really. ".repeat(20)}}`;
  const cases: [text: string, answer: string][] = [
    ['{"answer":["a",{"b":1}]}', '["a",{"b":1}]'],
    ['{ "answer" : {"b":{}} }\n', '{"b":{}}'],
    ['{"answer":90071992547409931}', "90071992547409931"],
    ['{"answer":"}"}', '"}"'],
    // Cut off, or no such object.
    ['{"answer":["a"', '["a"'],
    ['{"answer":', '{"answer":'],
    ['["a"]', '["a"]'],
    ['{"answers":[1]}', '{"answers":[1]}'],
    ["", ""],
    [refusal, refusal],
  ];
  for (const [text, answer] of cases) {
    for (const size of [1, 2, 3, 7, 200]) assertEquals(unwrapped(text, size), answer, `${text} in ${size}`);
  }
});

Deno.test("wrapSchema() keeps definitions at the top, where references find them", () => {
  const item = { $ref: "#/$defs/a" };
  assertEquals<unknown>(wrapSchema({ type: "array", items: item, $defs: { a: { type: "string" } } }), {
    type: "object",
    properties: { answer: { type: "array", items: item } },
    required: ["answer"],
    additionalProperties: false,
    $defs: { a: { type: "string" } },
  });
});
