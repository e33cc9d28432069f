import { assertEquals } from "@std/assert";
import { PhaseTimers, type Timer } from "../lib/phase_timers.ts";
import { simulateTime } from "./support/simulated_time.ts";

Deno.test("timers fire once and in time, and not after they were cleared", async () => {
  using time = simulateTime(0);
  const timers = new PhaseTimers();
  timers.hold();
  const rung: string[] = [];
  timers.set(60, () => rung.push("last"));
  const cleared = timers.set(10, () => rung.push("cleared"));
  timers.set(20, () => rung.push("first"));
  const second = timers.set(30, () => rung.push("second"));
  timers.clear(cleared);
  timers.clear(cleared);
  const by = async (ms: number) => {
    await time.pass(ms - time.now());
    return rung.toSorted();
  };
  assertEquals(await by(19), []);
  // One may ring 10 ms too late, with the next one and in any order.
  assertEquals(await by(42), ["first", "second"]);
  assertEquals(await by(59), ["first", "second"]);
  assertEquals(await by(72), ["first", "last", "second"]);
  timers.clear(second);
  timers.release();
});

Deno.test("a timer set by a timer fires, and one cleared by another does not", async () => {
  const timers = new PhaseTimers();
  const done = Promise.withResolvers<void>();
  const rung: number[] = [];
  const others: Timer[] = [];
  timers.set(5, () => {
    for (const other of others) timers.clear(other);
    timers.set(5, () => {
      rung.push(10);
      timers.set(60, done.resolve);
    });
  });
  for (const ms of [6, 50]) others.push(timers.set(ms, () => rung.push(ms)));
  // Both are due when the timer fires.
  for (const until = performance.now() + 20; performance.now() < until;);
  await done.promise;
  assertEquals(rung, [10]);
});

Deno.test("the process timer stops with the last timer if idle", () => {
  const timers = new PhaseTimers();
  timers.clear(timers.set(60_000, () => {}));
  timers.hold();
  const kept = timers.set(60_000, () => {});
  timers.hold();
  timers.release();
  timers.clear(kept);
  const left = timers.set(60_000, () => {});
  timers.release();
  timers.clear(left);
});

Deno.test("a stream is in one phase at a time, which expires once, up to 200 ms late and never early", async () => {
  using time = simulateTime(0);
  const timers = new PhaseTimers();
  const stream = timers.stream();
  const expired: string[] = [];
  const phase = (name: string, ms: number) => ({ ms, expire: () => void expired.push(`${name} ${time.now()}`) });
  stream.begin(phase("ended", 300));
  await time.pass(350);
  stream.begin(phase("silence", 500));
  await time.pass(900);
  assertEquals(expired, ["silence 900"]);
  stream.begin(phase("unread", 1_000));
  await time.pass(400);
  assertEquals(stream.elapsedMs, 300);
  stream.stop();
  stream.stop();
  await time.pass(2_000);
  assertEquals(expired, ["silence 900"]);
});

Deno.test("time in which the process is stopped does not count", async () => {
  using time = simulateTime(0);
  const timers = new PhaseTimers();
  let expiredAt = 0;
  timers.set(10_000, () => void (expiredAt = time.now()));
  await time.pass(2_300);
  time.stop(15_000);
  await time.pass(6_000);
  assertEquals([expiredAt, Math.round(timers.now() - performance.now()) < -14_000], [0, true]);
  await time.pass(2_000);
  assertEquals(Math.round(expiredAt / 1_000), 24);
});
