import { assertEquals, fail } from "@std/assert";
import type { Protocol, ReplyEvent, TokenUsage } from "../../lib/protocols/canonical/types.ts";
import { UsageEstimator } from "../../lib/upstreams/estimates.ts";
import { promptOf, user } from "../protocols/canonical/messages.ts";
import { callOf } from "./embedded/prompts.ts";

/** Usage at the start and at the end of an answer, of which the upstream reported these parts. */
async function usagesOf(protocol: Protocol, reply: { start?: TokenUsage; finish: TokenUsage }): Promise<unknown[]> {
  const events: ReplyEvent[] = [
    { type: "start", ...(reply.start !== undefined && { usage: reply.start }) },
    { type: "open", index: 0, block: { type: "reasoning" } },
    { type: "delta", index: 0, text: "Hm" },
    { type: "close", index: 0 },
    { type: "open", index: 1, block: { type: "text" } },
    { type: "delta", index: 1, text: "one two" },
    { type: "delta", index: 1, text: " three" },
    { type: "close", index: 1 },
    { type: "finish", reason: "end", usage: reply.finish },
  ];
  const estimator = new UsageEstimator(callOf(promptOf([user("Hi")], { protocol })));
  const all: ReplyEvent[] = [];
  while (events.length > 0) all.push(...await estimator.estimate(events.splice(0, 2)));
  return all.flatMap((event) => event.type === "start" || event.type === "finish" ? [event.usage] : []);
}

Deno.test("UsageEstimator keeps reported usage, including zeros", async () => {
  const finish = { prompt: 0, completion: 0 };
  assertEquals(await usagesOf("chat", { finish }), [undefined, finish]);
  const start = { prompt: 3 };
  assertEquals(await usagesOf("messages", { start, finish }), [start, finish]);
});

Deno.test("UsageEstimator counts unreported usage", async () => {
  const counted = { prompt: 7, completion: 4, reasoning: 1, counted: true };
  assertEquals(await usagesOf("chat", { finish: {} }), [undefined, counted]);
  assertEquals(await usagesOf("messages", { finish: {} }), [{ prompt: 7, counted: true }, counted]);
  assertEquals(await usagesOf("responses", { finish: { prompt: 2, input_cache_read: 1 } }), [undefined, {
    prompt: 2,
    input_cache_read: 1,
    completion: 4,
    reasoning: 1,
    counted: true,
  }]);
});

Deno.test("UsageEstimator prefers the reported input if report and estimate coincide", () => {
  const call = { ...callOf(promptOf([user("Hi")], { protocol: "messages" })), countInput: () => fail("counted") };
  const usage = { prompt: 9, input_cache_read: 2, completion: 4 };
  const events: ReplyEvent[] = [{ type: "start" }, { type: "finish", reason: "end", usage }];
  assertEquals(new UsageEstimator(call).estimate(events), [
    { type: "start", usage: { prompt: 9, input_cache_read: 2 } },
    { type: "finish", reason: "end", usage },
  ]);
});
