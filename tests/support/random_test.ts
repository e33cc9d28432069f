import { assert, assertEquals, assertNotEquals, assertThrows } from "@std/assert";
import { seeded } from "./random.ts";

Deno.test("seeded() repeats its numbers for the same seed", () => {
  const draw = (seed: number) => {
    const { next, below, chance, pick, shuffled } = seeded(seed);
    return [below(2 ** 32), next() * 2 ** 32, below(6), chance(0.5), pick(["a", "b", "c"]), shuffled([1, 2, 3, 4, 5])];
  };
  assertEquals(draw(1), [2693262067, 11749833, 3, false, "c", [2, 4, 5, 1, 3]]);
  assertEquals(draw(1), draw(1));
  assertNotEquals(draw(1), draw(2));
});

Deno.test("random values are within bounds, reach them, and are uniform", () => {
  const { next, below, chance, pick, shuffled } = seeded(7);
  const seen = Array.from({ length: 4 }, () => Array<number>(6).fill(0));
  const count = (row: number, value: number) => {
    const counts = seen[row] ?? [];
    counts[value] = (counts[value] ?? 0) + 1;
  };
  const six = [0, 1, 2, 3, 4, 5];
  for (let round = 0; round < 6_000; round++) {
    count(0, Math.floor(next() * 6));
    count(1, below(6));
    count(2, pick(six));
    const order = shuffled(six);
    assertEquals([...order].sort(), six);
    count(3, order[0] ?? -1);
  }
  for (const counts of seen) {
    assertEquals(counts.length, 6);
    assert(counts.every((times) => times > 850 && times < 1_150), `${counts}`);
  }
  const often = six.flatMap(() => Array.from({ length: 1_000 }, () => chance(0.2))).filter((is) => is).length;
  assert(often > 1_050 && often < 1_350, `${often}`);
  assert(!chance(0) && chance(1));
  assertThrows(() => pick([]), RangeError, "Cannot pick: the list is empty");
  assertEquals(shuffled([]), []);
});
