import { assert, assertEquals } from "@std/assert";
import { checkGrammar } from "./event_grammar.ts";
import { type BlockSequence, BlockSerializer } from "../../../lib/protocols/canonical/block_serializer.ts";
import type { ReplyEvent } from "../../../lib/protocols/canonical/types.ts";
import { seeded } from "../../support/random.ts";

const SIGNATURE = { issuer: "vendor", value: "signed" };
const CITATION = { from: "chat", value: { url: "a" } } as const;

/** A serializer whose events are collected. */
function gather(): { lanes: BlockSerializer; events: ReplyEvent[] } {
  const events: ReplyEvent[] = [];
  return { lanes: new BlockSerializer((event) => events.push(event)), events };
}

Deno.test("BlockSerializer emits the first sequence at once, and holds others until its end", () => {
  const { lanes, events } = gather();
  const [first, second] = [lanes.addSequence(), lanes.addSequence()];
  second.open({ type: "text" });
  second.delta("b");
  second.citation(CITATION);
  second.delta("b");
  assertEquals(events, []);
  first.open({ type: "reasoning" });
  first.delta("a");
  assertEquals(events.splice(0), [
    { type: "open", index: 0, block: { type: "reasoning" } },
    { type: "delta", index: 0, text: "a" },
  ]);
  first.end(SIGNATURE);
  assertEquals(events.splice(0), [
    { type: "close", index: 0, signature: SIGNATURE },
    { type: "open", index: 1, block: { type: "text" } },
    { type: "delta", index: 1, text: "b" },
    { type: "citation", index: 1, citation: CITATION },
    { type: "delta", index: 1, text: "b" },
  ]);
  second.delta("c");
  second.end();
  assertEquals(events, [{ type: "delta", index: 1, text: "c" }, { type: "close", index: 1 }]);
});

Deno.test("BlockSerializer.waitingSize counts waiting events only", () => {
  const { lanes } = gather();
  const [first, second, third] = [lanes.addSequence(), lanes.addSequence(), lanes.addSequence()];
  first.open({ type: "text" });
  first.delta("x".repeat(1000));
  assertEquals(lanes.waitingSize, 0);
  const grows = (say: () => void, least: number) => {
    const before = lanes.waitingSize;
    say();
    assert(lanes.waitingSize >= before + least, `${lanes.waitingSize} after ${before}`);
  };
  grows(() => second.open({ type: "tool_call", id: "x".repeat(1000), name: "y" }), 1000);
  grows(() => second.delta("x"), 32);
  grows(() => second.delta("x".repeat(1000)), 1000);
  grows(() => second.citation({ from: "chat", value: { text: "x".repeat(1000) } }), 1000);
  grows(() => second.end({ issuer: "vendor", value: "x".repeat(1000) }), 1000);
  grows(() => third.open({ type: "text" }), 32);
  first.end();
  assertEquals(lanes.waitingSize, 0);
});

Deno.test("BlockSerializer keeps every sequence complete and in order, for any interleaving", () => {
  const { below } = seeded(1);
  for (let round = 0; round < 300; round++) {
    const { lanes, events } = gather();
    const entered: { lane: BlockSequence; texts: string[] }[] = [];
    for (let step = 0; step < 60; step++) {
      const alive = entered.filter(({ lane }) => !lane.ended);
      const chosen = alive[below(alive.length + 1)];
      if (chosen === undefined) {
        entered.push({ lane: lanes.addSequence(), texts: [] });
        continue;
      }
      const { lane, texts } = chosen;
      const act = below(6);
      if (!lane.isOpen && act < 5) {
        lane.open({ type: "text" });
        texts.push("");
      } else if (act < 4) {
        const text = `${step} `;
        lane.delta(text);
        texts.push((texts.pop() ?? "") + text);
      } else if (act === 4) lane.close();
      else lane.end();
    }
    for (const { lane } of entered) if (!lane.ended) lane.end();
    const heard: string[] = [];
    const grammar = checkGrammar();
    grammar.push({ type: "start" });
    for (const event of events) {
      grammar.push(event);
      if (event.type === "open") heard.push("");
      if (event.type === "delta") heard.push((heard.pop() ?? "") + event.text);
    }
    grammar.push({ type: "finish", reason: "end", usage: {} });
    assertEquals(heard, entered.flatMap(({ texts }) => texts));
    assertEquals(lanes.waitingSize, 0);
  }
});
