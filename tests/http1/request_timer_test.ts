import { assertEquals } from "@std/assert";
import { RequestTimer } from "../../lib/http1/request_timer.ts";
import { PhaseTimers } from "../../lib/phase_timers.ts";
import { simulateTime } from "../support/simulated_time.ts";

const LIMITS = { connectMs: 1_000, firstByteMs: 2_000, idleMs: 3_000, totalMs: 9_000 };

Deno.test("each limit of a request is noticed in its phase, up to 40 ms late and never early", async () => {
  using time = simulateTime(0);
  const timers = new PhaseTimers();
  const cases: [message: RegExp, ms: number, progress: (timer: RequestTimer) => void][] = [
    [/no connection within 1 s/, 1_000, (timer) => timer.connecting()],
    [/no answer within 2 s/, 2_000, (timer) => {
      timer.connecting();
      timer.connected();
    }],
    [/nothing more within 3 s/, 3_000, (timer) => {
      timer.head();
      timer.wait();
    }],
    [/no whole answer within 9 s/, 9_000, (timer) => timer.progress()],
  ];
  for (const [message, ms, progress] of cases) {
    const errors: string[] = [];
    const timer = new RequestTimer(timers, { limits: LIMITS, call: { fail: (error) => errors.push(error.message) } });
    progress(timer);
    await time.pass(ms - 1);
    assertEquals(errors, []);
    await time.pass(41);
    assertEquals(errors.map((error) => message.test(error)), [true]);
  }
});

Deno.test("a stall of this process is not the upstream's", async () => {
  using time = simulateTime(0);
  const timers = new PhaseTimers();
  const errors: string[] = [];
  const timer = new RequestTimer(timers, { limits: LIMITS, call: { fail: (error) => errors.push(error.message) } });
  await time.pass(1_000);
  time.stop(60_000);
  await time.pass(500);
  timer.stop();
  assertEquals(errors, []);
});
