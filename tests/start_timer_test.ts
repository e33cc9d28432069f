import { assertEquals, assertGreater } from "@std/assert";
import { startCallTimeout } from "../lib/start_timer.ts";

Deno.test("startCallTimeout() waits in parts, so that a stall of the process uses up one of them", () => {
  const timers: { run: () => void; ms: number }[] = [];
  const later = (run: () => void, ms: number) => {
    const timer = { run, ms };
    timers.push(timer);
    return () => void (timer.run = () => {});
  };
  let runs = 0;
  startCallTimeout(() => runs++, 2_000, later);
  for (let at = 0; at < timers.length; at++) {
    assertEquals([timers.length, runs], [at + 1, 0]);
    timers[at]?.run();
  }
  assertEquals([runs, timers.reduce((sum, { ms }) => sum + ms, 0)], [1, 2_000]);
  assertGreater(timers.length, 5);

  const cancel = startCallTimeout(() => runs++, 2_000, later);
  timers.at(-1)?.run();
  const started = timers.length;
  cancel();
  timers.at(-1)?.run();
  assertEquals([timers.length, runs], [started, 1]);
});
