import { assert, assertEquals } from "@std/assert";
import type { Target } from "../../lib/catalog/model.ts";
import { planTargets } from "../../lib/routing/plan.ts";

/** Numbers from 0 up to 1 that look random, the same every time. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

function target(model: string, more: Partial<Target> = {}): Target {
  return { upstream: "u", model, priority: 0, weight: 1, ...more };
}

Deno.test("planTargets() gives every target once, by priority", () => {
  const random = seeded(1);
  for (let round = 0; round < 2_000; round++) {
    const targets = Array.from(
      { length: 1 + Math.floor(random() * 6) },
      (_, index) => target(`m${index}`, { priority: Math.floor(random() * 3), weight: Math.floor(random() * 3) }),
    );
    const before = structuredClone(targets);
    const plan = planTargets(targets, random);
    assertEquals(targets, before);
    assertEquals(new Set(plan), new Set(targets));
    assertEquals(plan.length, targets.length);
    for (const [index, { priority, weight }] of plan.entries()) {
      const next = plan[index + 1];
      if (next === undefined) continue;
      assert(priority <= next.priority);
      if (priority === next.priority) assert(weight > 0 || next.weight === 0, JSON.stringify(plan));
    }
  }
});

Deno.test("planTargets() puts targets of one priority first in proportion to their weights", () => {
  const random = seeded(2);
  const weights = [5, 3, 1.5, 0.5, 0];
  const targets = weights.map((weight, index) => target(String(index), { weight }));
  const rounds = 20_000;
  const first = weights.map(() => 0);
  const second = weights.map(() => 0);
  for (let round = 0; round < rounds; round++) {
    const [one, two] = planTargets([...targets, target("late", { priority: 1, weight: 100 })], random);
    first[Number(one?.model)] = (first[Number(one?.model)] ?? 0) + 1;
    if (one?.model === "0") second[Number(two?.model)] = (second[Number(two?.model)] ?? 0) + 1;
  }
  for (const [index, weight] of weights.entries()) {
    assert(Math.abs((first[index] ?? 0) / rounds - weight / 10) < 0.015, `${first}`);
  }
  // The others share in what is left.
  const led = second.reduce((sum, count) => sum + count, 0);
  for (const [index, weight] of weights.entries()) {
    if (index > 0) assert(Math.abs((second[index] ?? 0) / led - weight / 5) < 0.02, `${second}`);
  }
});

Deno.test("planTargets() takes the edges of chance", () => {
  const targets = [target("a", { weight: 0 }), target("b", { weight: 2 }), target("c", { weight: 0 })];
  for (const number of [0, 0.5, 1 - Number.EPSILON]) {
    assertEquals(planTargets(targets, () => number).map(({ model }) => model)[0], "b", String(number));
  }
  assertEquals(planTargets([], () => 0), []);
});
