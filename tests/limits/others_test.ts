import { assertEquals } from "@std/assert";
import { createMemoryLimiter } from "../../lib/limits/memory.ts";
import { OtherNodes } from "../../lib/limits/others.ts";
import { limitOf } from "./redis_nodes.ts";

/** How much room others are left of a limit among 3 nodes, where the node itself runs so many. */
function roomLeft(
  { limit, own: runs, running, ageMs = 0 }: Record<"limit" | "own" | "running", number> & { ageMs?: number },
): number {
  let now = 1000;
  const own = createMemoryLimiter({ monotonic: () => now });
  const others = new OtherNodes({ own, nodes: () => 3, now: () => now });
  const claim = limitOf("key:a", "concurrency", limit);
  for (let count = 0; count < runs; count++) own.take({ id: `own${count}`, claims: [claim], forMs: 600_000 });
  others.note([{ claim, remaining: Math.max(0, limit - runs - running), resetMs: 0 }]);
  now += ageMs;
  others.leaveRoom();
  others.leaveRoom();
  const room = own.sum(claim) - runs;
  others.forgetRoom();
  assertEquals(own.sum(claim), runs);
  return room;
}

Deno.test("a node without Redis leaves others what they ran above their shares, at most its own share, for a minute", () => {
  assertEquals(roomLeft({ limit: 6, own: 1, running: 5 }), 1);
  assertEquals(roomLeft({ limit: 6, own: 0, running: 6 }), 2);
  assertEquals(roomLeft({ limit: 6, own: 2, running: 4 }), 0);
  assertEquals(roomLeft({ limit: 6, own: 4, running: 2 }), 0);
  assertEquals(roomLeft({ limit: 2, own: 0, running: 2 }), 1);
  assertEquals(roomLeft({ limit: 6, own: 0, running: 6, ageMs: 59_000 }), 2);
  assertEquals(roomLeft({ limit: 6, own: 0, running: 6, ageMs: 60_000 }), 0);
});

Deno.test("what Redis told later counts: others that run less are left nothing, and rates are no slots", () => {
  const own = createMemoryLimiter({ monotonic: () => 1000 });
  const others = new OtherNodes({ own, nodes: () => 3, now: () => 1000 });
  const slots = limitOf("key:a", "concurrency", 6);
  const requests = limitOf("key:a", "requests", 6);
  others.note([{ claim: slots, remaining: 0, resetMs: 0 }, { claim: requests, remaining: 0, resetMs: 0 }]);
  others.note([{ claim: slots, remaining: 3, resetMs: 0 }]);
  others.leaveRoom();
  assertEquals([own.sum(slots), own.sum(requests)], [0, 0]);
});
