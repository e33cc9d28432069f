import { assertEquals, assertRejects } from "@std/assert";
import { abortable, delay } from "../lib/abort.ts";

Deno.test("abortable() settles like its promise, or rejects with the signal's reason", async () => {
  const control = new AbortController();
  const { signal } = control;
  assertEquals(await abortable(Promise.resolve(1), signal), 1);
  await assertRejects(() => abortable(Promise.reject(new Error("broken")), signal), Error, "broken");
  const late = Promise.withResolvers<never>();
  const waiting = abortable(late.promise, signal);
  control.abort(new RangeError("enough"));
  await assertRejects(() => waiting, RangeError, "enough");
  const later = Promise.withResolvers<never>();
  await assertRejects(() => abortable(later.promise, signal), RangeError, "enough");
  await assertRejects(() => abortable(Promise.resolve(1), signal), RangeError, "enough");
  // Neither rejection is unhandled.
  late.reject(new Error("late"));
  later.reject(new Error("later"));
  await new Promise((resolve) => setTimeout(resolve, 0));
});

Deno.test("delay() resolves after its time, or rejects with the signal's reason", async () => {
  const control = new AbortController();
  await delay(1, control.signal);
  const waiting = delay(60_000, control.signal);
  control.abort(new RangeError("enough"));
  await assertRejects(() => waiting, RangeError, "enough");
  await assertRejects(() => delay(60_000, control.signal), RangeError, "enough");
});
