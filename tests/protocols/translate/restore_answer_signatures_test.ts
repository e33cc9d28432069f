import { assertEquals } from "@std/assert";
import { checkGrammar } from "../canonical/event_grammar.ts";
import type { ContentBlock, ReplyEvent } from "../../../lib/protocols/canonical/types.ts";
import { aggregateEvents, eventsOf } from "../../../lib/protocols/canonical/aggregate_events.ts";
import { dropTrailingSignatures } from "../../../lib/protocols/translate/restore_answer.ts";

const SIGNATURE: ContentBlock = {
  type: "reasoning",
  text: "",
  hidden: true,
  signature: { issuer: "google", value: "c2ln" },
};
const THOUGHT: ContentBlock = { type: "reasoning", text: "Hm" };
const TEXT: ContentBlock = { type: "text", text: "Hello" };
const CALL: ContentBlock = { type: "tool_call", id: "c", name: "clock", arguments: "{}" };

function passed(blocks: ContentBlock[]): ContentBlock[] {
  const transform = dropTrailingSignatures();
  const finish = blocks.some(({ type }) => type === "tool_call") ? "tool_use" : "end";
  const events: ReplyEvent[] = eventsOf({ blocks, finish, usage: {} }).flatMap((event) => transform(event));
  const grammar = checkGrammar();
  assertEquals([...events.flatMap((event) => grammar.push(event)), ...grammar.end()], events);
  return aggregateEvents(events).blocks;
}

Deno.test("dropTrailingSignatures() drops a signature after the last text, and nothing else", () => {
  const cases: [given: ContentBlock[], kept: ContentBlock[]][] = [
    [[THOUGHT, TEXT, SIGNATURE], [THOUGHT, TEXT]],
    [[THOUGHT, TEXT, SIGNATURE, SIGNATURE], [THOUGHT, TEXT]],
    [[SIGNATURE, TEXT], [SIGNATURE, TEXT]],
    [[TEXT, SIGNATURE, TEXT], [TEXT, SIGNATURE, TEXT]],
    [[TEXT, SIGNATURE, CALL], [TEXT, SIGNATURE, CALL]],
    [[TEXT, CALL, SIGNATURE], [TEXT, CALL, SIGNATURE]],
    [[TEXT, THOUGHT], [TEXT, THOUGHT]],
    [[SIGNATURE], [SIGNATURE]],
    [[], []],
  ];
  for (const [given, kept] of cases) assertEquals(passed(given), kept);
});
