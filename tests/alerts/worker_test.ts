import { assertEquals } from "@std/assert";
import { Worker } from "../../lib/alerts/worker.ts";
import { until } from "../support/soon.ts";

Deno.test("Worker runs one step at a time, and once more for all wakes in between", async () => {
  const going = [Promise.withResolvers<void>(), Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let begun = 0;
  const worker = new Worker(() => going[begun++]?.promise ?? Promise.resolve(), () => {});
  worker.wake();
  worker.wake();
  worker.wake();
  assertEquals(begun, 1);
  going[0]?.resolve();
  await until("the second step", () => begun === 2);
  going[1]?.resolve();
  await until("the worker is idle", () => begun === 2);
  worker.wake();
  await until("the third step", () => begun === 3);
  worker.wake();
  const ended = worker.end();
  going[2]?.resolve();
  await ended;
  worker.wake();
  await worker.end();
  assertEquals(begun, 3);
});

Deno.test("Worker reports the first of several failures, and the first after a success", async () => {
  const outcomes = [false, false, true, false];
  const failures: unknown[] = [];
  let steps = 0;
  const worker = new Worker(
    () => outcomes[steps++] ? Promise.resolve() : Promise.reject(steps),
    (error) => void failures.push(error),
  );
  for (let count = 1; count <= outcomes.length; count++) {
    worker.wake();
    await until("a step", () => steps === count);
    await new Promise((resolve) => setTimeout(resolve));
  }
  assertEquals(failures, [1, 4]);
  await worker.end();
});
