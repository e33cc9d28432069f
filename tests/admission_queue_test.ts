import { assertEquals, assertRejects } from "@std/assert";
import { createAdmissionQueue } from "../lib/admission_queue.ts";
import { GatewayError } from "../lib/errors.ts";

const { signal } = new AbortController();

Deno.test("an admission queue leaves room and waiting places for other keys", async () => {
  const queue = createAdmissionQueue({ concurrent: 4, waiting: 4, waitMs: 60_000 });
  const greedy = { keyId: "greedy" };
  const inside = await Promise.all([1, 2, 3].map(() => queue.enter(signal, greedy)));
  const waiting = [1, 2, 3].map(() => queue.enter(signal, greedy));
  await assertRejects(() => queue.enter(signal, greedy), GatewayError);
  (await queue.enter(signal, { keyId: "other" }))();
  (await queue.enter(signal))();
  for (const leave of inside) leave();
  for (const leave of await Promise.all(waiting)) leave();
});

Deno.test("the keys that wait in an admission queue take turns", async () => {
  const queue = createAdmissionQueue({ concurrent: 1, waiting: 8, waitMs: 60_000 });
  const order: string[] = [];
  const first = await queue.enter(signal, { keyId: "a" });
  const others = ["a", "a", "a", "b", "b", "c"].map(async (keyId) => {
    const leave = await queue.enter(signal, { keyId });
    order.push(keyId);
    leave();
  });
  first();
  await Promise.all(others);
  assertEquals(order, ["b", "c", "a", "b", "a", "a"]);
});

Deno.test("a key alone in an admission queue gets its work done, however large", async () => {
  const queue = createAdmissionQueue({ concurrent: 4, waiting: 1, waitMs: 60_000 });
  const leave = await queue.enter(signal, { size: 9, keyId: "a" });
  const next = queue.enter(signal, { size: 4, keyId: "a" });
  leave();
  leave();
  (await next)();
});
