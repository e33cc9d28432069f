import { assertEquals, assertThrows } from "@std/assert";
import { BUCKET_MS, leaseEnd, Window, WINDOW_MS, windowEnd } from "../../lib/limits/sliding_window.ts";
import { seeded } from "../support/random.ts";

Deno.test("windowEnd() is later than 60 s after the end of the bucket, by less than a bucket", () => {
  for (
    const [now, end] of [[0, 60_500], [0.25, 60_500], [499.999, 60_500], [500, 61_000], [1_234_567, 1_295_000]] as const
  ) {
    assertEquals(windowEnd(now), end);
  }
});

Deno.test("leaseEnd() is at most a bucket after the end of the lease", () => {
  for (const [now, forMs, end] of [[0, 0, 0], [0, 500, 500], [1, 500, 1000], [250.5, 0.25, 500]] as const) {
    assertEquals(leaseEnd(now, forMs), end);
  }
});

Deno.test("Window returns its sum, the wait for a cost, and its reset", () => {
  const window = new Window();
  const at = (cost: number, now: number) => window.waitFor(cost, { limit: 10, now });
  assertEquals([window.sum(0), window.resetMs(0), at(10, 0), at(11, 0)], [0, 0, 0, Infinity]);
  window.add(4, 2000);
  window.add(3, 1000);
  window.add(2, 3000);
  assertEquals([window.sum(0), window.resetMs(0)], [9, 3000]);
  assertEquals([1, 2, 4, 5, 8, 9, 10, 11].map((cost) => at(cost, 0)), [
    0,
    1000,
    1000,
    2000,
    2000,
    3000,
    3000,
    Infinity,
  ]);
  assertEquals([window.sum(999), window.sum(1000), at(5, 1000), window.resetMs(1000)], [9, 6, 1000, 2000]);
  assertEquals([window.sum(3000), window.resetMs(3000)], [0, 0]);
});

Deno.test("Window.remove() removes from the bucket of the amount, at most that amount, and nothing after its end", () => {
  const window = new Window();
  window.add(5, 1000);
  window.add(5, 2000);
  window.remove(2, 1000);
  assertEquals([window.sum(0), window.waitFor(10, { limit: 15, now: 0 })], [8, 1000]);
  window.remove(9, 1000);
  assertEquals([window.sum(0), window.waitFor(10, { limit: 14, now: 0 })], [5, 2000]);
  window.remove(1, 1500);
  assertEquals(window.sum(2000), 0);
  window.remove(5, 2000);
  assertEquals(window.sum(2000), 0);
});

Deno.test("Window.correct() removes a surplus, and adds a deficit to the same or the current bucket", () => {
  const cases: [actual: number, now: number, sum: number, resetMs: number][] = [
    [0, 0, 0, 0],
    [3, 0, 3, 60_500],
    [5, 0, 5, 60_500],
    [9, 60_499, 9, 1],
    [3, 60_500, 0, 0],
    [9, 60_500, 4, 60_500],
  ];
  for (const [actual, now, sum, resetMs] of cases) {
    const window = new Window();
    window.add(5, windowEnd(0));
    window.correct(5, { actual, end: windowEnd(0), now });
    assertEquals([window.sum(now), window.resetMs(now)], [sum, resetMs], `${actual} at ${now}`);
  }
});

Deno.test("Window rejects fractional and negative numbers, and stays unchanged", () => {
  const window = new Window();
  window.add(5, 1000);
  for (const amount of [NaN, -1, 0.5, Infinity]) {
    assertThrows(() => window.add(amount, 1000), RangeError);
    assertThrows(() => window.remove(amount, 1000), RangeError);
    assertThrows(() => window.correct(5, { actual: amount, end: 1000, now: 0 }), RangeError);
  }
  assertEquals(window.sum(0), 5);
});

Deno.test("Window never exceeds the limit within 60 seconds, and admits waiting requests as early as buckets allow", () => {
  for (let seed = 1; seed <= 300; seed++) {
    const { below } = seeded(seed);
    const window = new Window();
    const limit = 1 + below(20);
    const taken: { at: number; cost: number }[] = [];
    const within = (ms: number, now: number) =>
      taken.filter(({ at }) => at >= now - ms).reduce((sum, { cost }) => sum + cost, 0);
    let now = below(10_000);
    for (let step = 0; step < 60; step++) {
      const cost = 1 + below(limit);
      const waitMs = window.waitFor(cost, { limit, now });
      if (waitMs > 0) {
        assertEquals(within(WINDOW_MS + BUCKET_MS, now + waitMs - BUCKET_MS) + cost > limit, true, `seed ${seed}`);
        now += waitMs;
      }
      window.add(cost, windowEnd(now));
      taken.push({ at: now, cost });
      assertEquals(within(WINDOW_MS, now) <= limit, true, `seed ${seed}`);
      now += below(below(2) === 0 ? 400 : 20_000);
    }
  }
});
