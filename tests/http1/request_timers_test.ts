import { assertEquals } from "@std/assert";
import { RequestTimers } from "../../lib/http1/request_timers.ts";
import type { GatewayError } from "../../lib/errors.ts";

const LIMITS = { connectMs: 60_000, firstByteMs: 40, idleMs: 60_000, totalMs: 60_000 };

/** Stalls the process until the limit of a request has passed, and runs the timers that are due. */
async function stall(): Promise<void> {
  for (const end = performance.now() + 3 * LIMITS.firstByteMs; performance.now() < end;);
  await new Promise((resolve) => setTimeout(resolve, 0));
}

Deno.test("a stall of this process is not the upstream's, also after one without a request", async () => {
  const timers = new RequestTimers();
  const errors: GatewayError[] = [];
  const start = () => timers.start(LIMITS, { fail: (error) => errors.push(error) });
  start().stop();
  await stall();
  const timer = start();
  await stall();
  // The answer arrived during the stall and is read only now.
  timer.head();
  await new Promise((resolve) => setTimeout(resolve, 60));
  timer.stop();
  timers.close();
  assertEquals(errors, []);
});
