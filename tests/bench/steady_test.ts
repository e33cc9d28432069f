import { assert, assertEquals } from "@std/assert";
import { mixOf, SHARES } from "../../bench/suite/mix.ts";
import { lowsOf, slope, trendOf } from "../../bench/suite/steady.ts";
import { seeded } from "../support/random.ts";

const LEEWAY = { share: 0.03, value: 5 };
/** Asserts that two numbers are equal except for rounding errors. */
const assertNear = (actual: number, expected: number, by = 1e-9) =>
  assert(Math.abs(actual - expected) <= by, `${actual} is not near ${expected}`);
/** 90 points, ten seconds apart. */
const series = (value: (at: number) => number) =>
  Array.from({ length: 90 }, (_, at) => ({ seconds: at * 10, value: value(at) }));

Deno.test("slope() is the growth per second, regardless of even noise", () => {
  assertNear(slope(series((at) => 100 + at * 10 * 0.25)), 0.25);
  assertNear(slope(series((at) => 100 + at * 10 * 0.25 + (at % 2 === 0 ? 3 : -3))), 0.25, 0.01);
  assert(Number.isNaN(slope([{ seconds: 1, value: 1 }])));
});

Deno.test("a series is flat if its last third exceeds the middle third by no more than allowed", () => {
  const table: [string, (at: number) => number, boolean][] = [
    ["a constant", () => 300, true],
    ["a saw", (at) => 300 + at % 10 * 5, true],
    ["a rise that has come to its end", (at) => Math.min(300, 100 + at * 10), true],
    ["a fall", (at) => 300 - at, true],
    ["a slow leak", (at) => 300 + at * 0.5, false],
    ["a step in the last third", (at) => at < 60 ? 300 : 310, false],
    ["a small quantity within the fixed leeway", (at) => at < 60 ? 10 : 14, true],
  ];
  for (const [name, value, flat] of table) assertEquals(trendOf(series(value), LEEWAY).flat, flat, name);
});

Deno.test("a series is summarized by thirds, rise and growth per hour", () => {
  const { thirds, rise, perHour } = trendOf(series((at) => at), LEEWAY);
  assertEquals(thirds, [14.5, 44.5, 74.5]);
  assertEquals(rise, 60);
  assertNear(perHour, 360);
});

Deno.test("lows() of a sawtooth are the values after each fall", () => {
  const lows = lowsOf(series((at) => 100 + at % 7 * 20), 7);
  assertEquals(lows.map(({ value }) => value), lows.map(() => 100));
  assertEquals(lows.map(({ seconds }) => seconds), [0, 70, 140, 210, 280, 350, 420, 490, 560, 630, 700, 770, 840]);
  assertEquals(lowsOf([], 7), []);
});

Deno.test("the soak's mix has the shares and body sizes that it claims", () => {
  const next = mixOf({ clients: ["one", "two"], admin: "admin" }, seeded(1).next);
  const counts: Record<string, number> = {};
  const requested = 10_000;
  for (let number = 0; number < requested; number++) {
    const ask = next();
    counts[ask.kind] = (counts[ask.kind] ?? 0) + 1;
    if (ask.kind !== "bad" && ask.body !== "") JSON.parse(ask.body);
    assert(ask.path.startsWith("/"), ask.path);
  }
  const total = Object.values(SHARES).reduce((sum, share) => sum + share, 0);
  assertEquals(Object.keys(counts).sort(), Object.keys(SHARES).sort());
  for (const [kind, share] of Object.entries(SHARES)) {
    const expected = share / total * requested;
    assert(Math.abs((counts[kind] ?? 0) - expected) < 6 * Math.sqrt(expected), kind);
  }
});
