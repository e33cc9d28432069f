import { assertEquals } from "@std/assert";
import { createDrain, stopping } from "../../lib/server/drain.ts";

Deno.test("a server that ends is leaving before it is refusing, and never serves again", () => {
  const drain = createDrain();
  const phases = [drain.phase];
  for (const step of [drain.leave, drain.refuse, drain.leave]) {
    step();
    phases.push(drain.phase);
  }
  assertEquals(phases, ["serving", "leaving", "refusing", "refusing"]);
});

Deno.test("bodies have arrived when the last of them has, however often each of them says so", async () => {
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

Deno.test("who comes too late is told when to try again", () => {
  const { status, retryAfterMs } = stopping();
  assertEquals([status, retryAfterMs], [503, 2_000]);
});
