import { assertEquals } from "@std/assert";
import { type Alarm, Alarms } from "../../lib/server/alarms.ts";
import { simulateTime } from "../simulated_time.ts";

Deno.test("alarms ring in time and once, and not where they were cleared", async () => {
  using time = simulateTime(0);
  const alarms = new Alarms();
  alarms.enter();
  const rung: string[] = [];
  alarms.set(60, () => rung.push("last"));
  const cleared = alarms.set(10, () => rung.push("cleared"));
  alarms.set(20, () => rung.push("first"));
  const second = alarms.set(30, () => rung.push("second"));
  alarms.clear(cleared);
  alarms.clear(cleared);
  const by = async (ms: number) => {
    await time.pass(ms - time.now());
    return rung.toSorted();
  };
  assertEquals(await by(19), []);
  // One may ring 10 ms too late, with the next one and in any order.
  assertEquals(await by(42), ["first", "second"]);
  assertEquals(await by(59), ["first", "second"]);
  assertEquals(await by(72), ["first", "last", "second"]);
  alarms.clear(second);
  alarms.leave();
});

Deno.test("an alarm that is set by an alarm rings, and one that is cleared by another does not", async () => {
  const alarms = new Alarms();
  const done = Promise.withResolvers<void>();
  const rung: number[] = [];
  const others: Alarm[] = [];
  alarms.set(5, () => {
    for (const other of others) alarms.clear(other);
    alarms.set(5, () => {
      rung.push(10);
      alarms.set(60, done.resolve);
    });
  });
  for (const ms of [6, 50]) others.push(alarms.set(ms, () => rung.push(ms)));
  // Both are due when the timer comes round.
  for (const until = performance.now() + 20; performance.now() < until;);
  await done.promise;
  assertEquals(rung, [10]);
});

Deno.test("the timer stops with the last alarm where nobody is there, and runs on where somebody is", () => {
  const alarms = new Alarms();
  alarms.clear(alarms.set(60_000, () => {}));
  alarms.enter();
  const kept = alarms.set(60_000, () => {});
  alarms.enter();
  alarms.leave();
  alarms.clear(kept);
  const left = alarms.set(60_000, () => {});
  alarms.leave();
  alarms.clear(left);
});
