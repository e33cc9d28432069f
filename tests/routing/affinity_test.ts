import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { conversationId, ConversationTargets, drawOf } from "../../lib/routing/affinity.ts";

const TARGET = { upstream: "a", model: "m" };
const OTHER = { upstream: "b", model: "m" };

Deno.test("ConversationTargets remembers the last target of a conversation for its time", () => {
  let now = 0;
  const targets = new ConversationTargets(() => now);
  targets.remember("key_1", { id: "one", target: TARGET, forMs: 1_000 });
  assertEquals(targets.find("key_1", "one"), "a/m");
  assertEquals([targets.find("key_2", "one"), targets.find("key_1", "two")], [undefined, undefined]);
  now = 900;
  targets.remember("key_1", { id: "one", target: OTHER, forMs: 1_000 });
  now = 1_899;
  assertEquals(targets.find("key_1", "one"), "b/m");
  now = 1_900;
  assertEquals(targets.find("key_1", "one"), undefined);
});

Deno.test("ConversationTargets forgets the oldest: 2,000 of a key, 50,000 of all", () => {
  const targets = new ConversationTargets(() => 0);
  const remember = (keyId: string, id: number) => targets.remember(keyId, { id: `${id}`, target: TARGET, forMs: 1 });
  const kept = (keyId: string) =>
    Array.from({ length: 3_000 }, (_, id) => id).filter((id) => targets.find(keyId, `${id}`) !== undefined);
  for (let id = 0; id < 3_000; id++) remember("flood", id);
  assertEquals([kept("flood").length, kept("flood")[0]], [2_000, 1_000]);
  for (let key = 0; key < 24; key++) for (let id = 0; id < 2_000; id++) remember(`${key}`, id);
  assertEquals(kept("flood").length, 2_000);
  // The entries of the least recently used key are evicted.
  for (let id = 0; id < 500; id++) remember("late", id);
  assertEquals([kept("flood").length, kept("late").length, kept("0").length], [1_500, 500, 2_000]);
});

Deno.test("drawOf() is the same everywhere, differs by target, and spreads conversations evenly", () => {
  assertEquals(drawOf("x", TARGET), drawOf("x", { ...TARGET }));
  let first = 0;
  for (let at = 0; at < 4_000; at++) {
    const [one, other] = [drawOf(`${at}`, TARGET), drawOf(`${at}`, OTHER)];
    assert(one >= 0 && one < 1);
    if (one < other) first++;
  }
  assert(Math.abs(first / 4_000 - 0.5) < 0.03, String(first));
  assertNotEquals(conversationId(["ab", "c"]), conversationId(["a", "bc"]));
});
