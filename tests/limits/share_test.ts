import { assertEquals } from "@std/assert";
import { divideLimits } from "../../lib/limits/share.ts";
import { limitOf } from "./redis_nodes.ts";

Deno.test("divideLimits() divides limits among nodes, to at least 1 unless the limit is 0", () => {
  const cases: [limit: number, nodes: number, share: number][] = [
    [60, 3, 20],
    [61, 3, 20],
    [62, 1, 62],
    [2, 3, 1],
    [1, 100, 1],
    [0, 3, 0],
    [Number.MAX_SAFE_INTEGER, 2, 4503599627370495],
  ];
  for (const [limit, nodes, share] of cases) {
    assertEquals(
      divideLimits([limitOf("key:a", "requests", limit, 0)], nodes)[0]?.limit,
      share,
      `${limit} of ${nodes}`,
    );
  }
});

Deno.test("divideLimits() admits costs above a share, and none above a limit", () => {
  const cases: [cost: number, limit: number][] = [[100, 300], [300, 300], [301, 300], [900, 900], [901, 300]];
  for (const [cost, limit] of cases) {
    assertEquals(
      divideLimits([limitOf("key:a", "tokens", 900, cost)], 3)[0]?.limit,
      cost > 300 && cost <= 900 ? cost : limit,
    );
  }
});
