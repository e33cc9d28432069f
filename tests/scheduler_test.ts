import { assertEquals, assertRejects } from "@std/assert";
import { mapSliced, runForKey, runSliced, runSlicedNow, sortSliced, yieldToEventLoop } from "../lib/scheduler.ts";
import { startGateway } from "./support/gateway.ts";
import { seeded } from "./support/random.ts";

Deno.test("sortSliced() sorts stably like the runtime", async () => {
  const { below } = seeded(7);
  for (const length of [0, 1, 2, 255, 256, 257, 511, 512, 513, 1000, 5000]) {
    const items = Array.from({ length }, (_, place) => ({ place, value: below(50) }));
    const given = [...items];
    const compare = (one: { value: number }, other: { value: number }) => one.value - other.value;
    assertEquals(await sortSliced(items, compare), items.toSorted(compare), String(length));
    assertEquals(items, given);
  }
});

Deno.test("mapSliced() maps items in order, and rejects with the error thrown", async () => {
  for (const length of [0, 1, 256, 257, 3000]) {
    const items = Array.from({ length }, (_, place) => place);
    assertEquals(await mapSliced(items, (place) => place * 2), items.map((place) => place * 2));
  }
  await assertRejects(
    () =>
      mapSliced(Array(1000).fill(0), () => {
        throw new RangeError("no");
      }),
    RangeError,
    "no",
  );
});

Deno.test("mapSliced() yields to the event loop during long work", async () => {
  let turns = 0;
  const timer = setInterval(() => turns++, 0);
  try {
    // Each item takes so long that others get their turns, however slow the machine is.
    await mapSliced(Array(20_000).fill(0), () => {
      for (let spun = 0; spun < 2_000 && turns < 2; spun++) performance.now();
    });
  } finally {
    clearInterval(timer);
  }
  assertEquals(turns >= 2, true, `${turns} turns`);
});

Deno.test("yieldToEventLoop() lets API keys take turns", async () => {
  const turns: string[] = [];
  const wait = (key: string) => runForKey(key, yieldToEventLoop).then(() => turns.push(key));
  await Promise.all(["a", "a", "a", "a", "b", "b", "c"].map(wait));
  assertEquals(turns.join(""), "abcabaa");
});

Deno.test("a request's long work takes turns with that of all other keys", async () => {
  await using gateway = startGateway({});
  let turns = 0;
  const others = Array.from({ length: 200 }, () => yieldToEventLoop().then(() => turns++));
  const response = await gateway.ask("chat", { model: "acme/none", messages: ["a".repeat(600_000)] });
  const passed = turns;
  await response.body?.cancel();
  assertEquals(passed < others.length, true, `${passed} turns`);
  await Promise.all(others);
});

Deno.test("runSlicedNow() finishes short work synchronously, and yields during long work", async () => {
  let turns = 0;
  const timer = setInterval(() => turns++, 0);
  const waiting = Array.from({ length: 50 }, () => yieldToEventLoop());
  try {
    assertEquals(await runSlicedNow(work(() => true)), "done");
    assertEquals(turns, 0);
    const end = performance.now() + 20_000;
    assertEquals(await runSlicedNow(work(() => turns >= 2 || performance.now() > end)), "done");
    assertEquals(turns >= 2, true, `${turns} turns`);
  } finally {
    clearInterval(timer);
    await Promise.all(waiting);
  }
});

Deno.test("runSliced() ends aborted work before its next slice, with the reason", async () => {
  for (const run of [runSliced, runSlicedNow]) {
    const stop = new AbortController();
    let steps = 0;
    const endless = function* (): Generator<void, never> {
      for (;;) {
        if (++steps === 3) stop.abort(new RangeError("gone"));
        yield;
      }
    };
    await assertRejects(() => run(endless(), stop.signal), RangeError, "gone");
    const once = steps;
    await assertRejects(() => run(endless(), stop.signal), RangeError, "gone");
    assertEquals(steps, once);
  }
});

function* work(isDone: () => boolean): Generator<void, string> {
  while (!isDone()) yield;
  return "done";
}
