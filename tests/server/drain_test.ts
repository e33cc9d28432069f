import { assertEquals } from "@std/assert";
import { createDrain, shutdownError } from "../../lib/server/drain.ts";

Deno.test("Drain goes from shutting down to refusing, and never back", () => {
  const drain = createDrain();
  const phases = [drain.phase];
  for (const step of [drain.beginShutdown, drain.refuse, drain.beginShutdown]) {
    step();
    phases.push(drain.phase);
  }
  assertEquals(phases, ["serving", "shutting_down", "refusing", "refusing"]);
});

Deno.test("Drain resolves when the last body has arrived, even if bodies report twice", async () => {
  const drain = createDrain();
  await drain.arrived();
  const [one, two] = [drain.arrive(), drain.arrive()];
  let arrived = false;
  const waited = drain.arrived().then(() => arrived = true);
  one();
  one();
  await new Promise((resolve) => setTimeout(resolve, 0));
  assertEquals(arrived, false);
  two();
  await waited;
});

Deno.test("a request during shutdown is told when to retry", () => {
  const { status, retryAfterMs } = shutdownError();
  assertEquals([status, retryAfterMs], [503, 2_000]);
});
