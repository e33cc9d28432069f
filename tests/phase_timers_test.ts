import { assertEquals } from "@std/assert";
import { PhaseTimer, PhaseTimers } from "../lib/phase_timers.ts";
import { simulateTime } from "./support/simulated_time.ts";

Deno.test("timers expire once, up to 40 ms late and never early, and not after they were stopped", async () => {
  using time = simulateTime(0);
  const timers = new PhaseTimers();
  const expired: string[] = [];
  timers.set(600, () => expired.push("last"));
  timers.set(200, () => {
    expired.push("first");
    other.stop();
    timers.set(200, () => expired.push("by first"));
  });
  const other = timers.set(200, () => expired.push("other"));
  const stopped = timers.set(100, () => expired.push("stopped"));
  stopped.stop();
  stopped.stop();
  const by = async (ms: number) => {
    await time.pass(ms - time.now());
    return [...expired];
  };
  assertEquals(await by(199), []);
  assertEquals(await by(240), ["first"]);
  assertEquals(await by(399), ["first"]);
  assertEquals(await by(599), ["first", "by first"]);
  assertEquals(await by(640), ["first", "by first", "last"]);
});

Deno.test("the interval ends with the last timer, or lingers until the next tick", async () => {
  new PhaseTimers().set(60_000, () => {}).stop();
  using time = simulateTime(0);
  const ticked: number[] = [];
  const timers = new PhaseTimers({ lingers: true });
  timers.set(60_000, () => {}).stop();
  await time.pass(10);
  timers.set(0, () => ticked.push(time.now()));
  await time.pass(10);
  timers.close();
  assertEquals(ticked, [20]);
});

Deno.test("a stream is in one phase at a time, which expires once, up to 40 ms late and never early", async () => {
  using time = simulateTime(0);
  const timers = new PhaseTimers();
  const stream = new PhaseTimer(timers);
  const expired: string[] = [];
  const phase = (name: string, ms: number) => ({ ms, expire: () => void expired.push(`${name} ${time.now()}`) });
  stream.begin(phase("ended", 300));
  await time.pass(310);
  stream.begin(phase("silence", 500));
  await time.pass(900);
  assertEquals(expired, ["silence 820"]);
  stream.begin(phase("unread", 1_000));
  await time.pass(400);
  assertEquals(stream.elapsedMs, 380);
  stream.stop();
  stream.stop();
  await time.pass(2_000);
  assertEquals(expired, ["silence 820"]);
});

Deno.test("time in which the process is stopped does not count", async () => {
  using time = simulateTime(0);
  const timers = new PhaseTimers();
  let expiredAt = 0;
  timers.set(10_000, () => void (expiredAt = time.now()));
  await time.pass(2_300);
  time.stop(15_000);
  await time.pass(6_000);
  assertEquals(expiredAt, 0);
  await time.pass(2_000);
  assertEquals(Math.round(expiredAt / 1_000), 25);
});
