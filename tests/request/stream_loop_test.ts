import { assert, assertEquals, assertRejects } from "@std/assert";
import type { ReplyEvent } from "../../lib/protocols/canonical/types.ts";
import { GatewayError } from "../../lib/errors.ts";
import { PhaseTimers } from "../../lib/phase_timers.ts";
import { StreamLoop } from "../../lib/request/stream_loop.ts";
import { type MeteredStream, meteredStream } from "./metered_stream.ts";
import { runForKey, yieldToEventLoop } from "../../lib/scheduler.ts";
import { simulateTime } from "../support/simulated_time.ts";
import type { FrameFeed, Step } from "../../lib/upstreams/upstream.ts";

const START: ReplyEvent = { type: "start" };
const DELTA: ReplyEvent = { type: "delta", index: 0, text: "a" };
const BUSY = new GatewayError("overloaded", "Busy");

/** A feed of steps that are handed in one by one. */
function handFed(): {
  feed: FrameFeed;
  give(step: Step | Error | undefined): void;
  reads: () => number;
  over: () => number;
} {
  const given: PromiseWithResolvers<Step | undefined>[] = [];
  let read = 0;
  let handed = 0;
  let cancelled = 0;
  const at = (index: number) => given[index] ??= Promise.withResolvers();
  return {
    feed: {
      read: () => at(read++).promise,
      fail: (error) => [{ data: `failed: ${error.kind}` }],
      cancel: () => void cancelled++,
    },
    give(step) {
      const { promise, resolve, reject } = at(handed++);
      promise.catch(() => {});
      if (step instanceof Error) reject(step);
      else resolve(step);
    },
    reads: () => read,
    over: () => cancelled,
  };
}

function step(data: string, ...events: ReplyEvent[]): Step {
  return { frames: data === "" ? [] : [{ data }], events };
}

function textOf(value: Uint8Array | undefined): string {
  return new TextDecoder().decode(value);
}

/** A stream over a feed, with the response's body, once it has begun or is late. */
async function bodyOf(
  { feed, keepAlive, keepAliveMs, metered }: {
    feed: FrameFeed;
    keepAlive: string;
    keepAliveMs: number;
    metered?: MeteredStream;
  },
): Promise<ReadableStream<Uint8Array>> {
  const { stream, measurement } = metered ?? await meteredStream();
  const loop = new StreamLoop({
    request: {
      drainForBill: () => false,
      drainOrCancel: () => feed.cancel(),
      settleUnanswered() {},
      failUnanswered: (error) => feed.fail(error),
      errorFrames: (error) => feed.fail(error),
    },
    timers: new PhaseTimers(),
    keepAlive,
    keepAliveMs,
    unreadMs: 60_000,
  });
  await loop.opensInTime(loop.open({ feed, meter: stream, target: measurement, totalMs: 60_000 }));
  return loop.body();
}

const QUIET = { keepAlive: ": alive\n", keepAliveMs: 60_000 };

Deno.test("a stream waits for its first event, and sends the frames of each step as one chunk", async () => {
  const { feed, give, over } = handFed();
  give(step("1", START));
  give(step(""));
  give(step("2", DELTA));
  give({ frames: [{ data: "3" }, { event: "e", data: "4" }], events: [] });
  give(step(""));
  give(step("5"));
  give(undefined);
  const chunks = await Array.fromAsync(await bodyOf({ feed, ...QUIET }), textOf);
  assertEquals(chunks, ["data: 1\n\n", "data: 2\n\n", "data: 3\n\nevent: e\ndata: 4\n\n", "data: 5\n\n"]);
  assertEquals(over(), 1);
});

Deno.test("a stream waits through any number of steps without frames", async () => {
  for (const events of [[], [START]]) {
    const { feed, give } = handFed();
    give(step("1", START));
    for (let number = 0; number < 20_000; number++) give(step("", ...events));
    give(step("2", DELTA));
    give(undefined);
    const chunks = await Array.fromAsync(await bodyOf({ feed, ...QUIET }), textOf);
    assertEquals(chunks, ["data: 1\n\n", "data: 2\n\n"]);
  }
});

Deno.test("a stream begins without an event once too much waits for one", async () => {
  const { feed, give, reads } = handFed();
  const data = "x".repeat(100_000);
  for (let number = 0; number < 12; number++) give(step(data, START));
  const body = await bodyOf({ feed, ...QUIET });
  assertEquals(reads(), 11);
  await body.cancel();
});

Deno.test("opening a stream fails with an error that precedes the first event", async () => {
  const cases: (Step | Error)[][] = [
    [step("x", { type: "error", error: BUSY })],
    [step("1", START), step("x", { type: "error", error: BUSY })],
    [step("x", START, { type: "error", error: BUSY })],
    [BUSY],
    [step("1", START), BUSY],
  ];
  for (const steps of cases) {
    const { feed, give, over } = handFed();
    for (const each of steps) give(each);
    assertEquals(await assertRejects(() => bodyOf({ feed, ...QUIET }), GatewayError), BUSY);
    assertEquals(over(), 1);
  }
});

Deno.test("a failure after the first event is written into the stream", async () => {
  for (const [thrown, kind] of [[BUSY, "overloaded"], [new TypeError("oops"), "internal"]] as const) {
    const { feed, give, over } = handFed();
    give(step("1", START, DELTA));
    give(thrown);
    const chunks = await Array.fromAsync(await bodyOf({ feed, ...QUIET }), textOf);
    assertEquals(chunks, ["data: 1\n\n", `data: failed: ${kind}\n\n`]);
    assertEquals(over(), 1);
  }
});

Deno.test("a frame that cannot be written breaks the answer off, and is entered as a failure", async () => {
  const { feed, give, over } = handFed();
  give(step("1", DELTA));
  give(step("2\n3", DELTA));
  const metered = await meteredStream();
  const body = await bodyOf({ feed, ...QUIET, metered });
  await assertRejects(() => Array.fromAsync(body), RangeError);
  assertEquals(over(), 1);
  assertEquals(metered.meter.ended, true);
  assertEquals(await metered.entry(), ["failed", 200, 0, 0]);
});

Deno.test("a stream reads nothing ahead of the client", async () => {
  const { feed, give, reads } = handFed();
  for (let number = 0; number < 10; number++) give(step(String(number), DELTA));
  give(undefined);
  const reader = (await bodyOf({ feed, ...QUIET })).getReader();
  await new Promise((resolve) => setTimeout(resolve, 5));
  assertEquals(reads(), 1);
  await reader.read();
  await reader.read();
  await new Promise((resolve) => setTimeout(resolve, 5));
  assertEquals(reads(), 2);
  await reader.cancel();
});

Deno.test("a stream without a first event in time begins with a keep-alive, and loses nothing", async () => {
  const { feed, give, reads } = handFed();
  const body = await bodyOf({ feed, keepAlive: ": alive\n", keepAliveMs: 20 });
  // The step arrives while no read is pending.
  give(step("1", START, DELTA));
  await new Promise((resolve) => setTimeout(resolve, 5));
  const reader = body.getReader();
  assertEquals(textOf((await reader.read()).value), ": alive\n");
  assertEquals(textOf((await reader.read()).value), "data: 1\n\n");
  assertEquals(textOf((await reader.read()).value), ": alive\n");
  give(step("2", DELTA));
  await new Promise((resolve) => setTimeout(resolve, 5));
  assertEquals(textOf((await reader.read()).value), "data: 2\n\n");
  give(undefined);
  assertEquals((await reader.read()).done, true);
  assertEquals(reads(), 3);
});

Deno.test("a client can disconnect from a late stream that no target answered", async () => {
  const error = { data: "failed" };
  const loop = new StreamLoop({
    request: {
      drainForBill: () => false,
      drainOrCancel() {},
      settleUnanswered() {},
      failUnanswered: () => [error],
      errorFrames: () => [error],
    },
    timers: new PhaseTimers(),
    keepAlive: ": alive\n",
    keepAliveMs: 20,
    unreadMs: 60_000,
  });
  const failing = Promise.withResolvers<void>();
  assertEquals(await loop.opensInTime(failing.promise), false);
  const reader = loop.body().getReader();
  assertEquals(textOf((await reader.read()).value), ": alive\n");
  failing.reject(BUSY);
  assertEquals(textOf((await reader.read()).value), "data: failed\n\n");
  await reader.cancel();
});

Deno.test("a stream sends no keep-alive while events arrive, or to a client that does not read", async () => {
  using time = simulateTime(0);
  const { feed, give } = handFed();
  give(step("0", DELTA));
  const reader = (await bodyOf({ feed, keepAlive: ": alive\n", keepAliveMs: 200 })).getReader();
  for (let number = 0; number < 10; number++) {
    assertEquals(textOf((await reader.read()).value), `data: ${number}\n\n`);
    await time.pass(150);
    give(step(String(number + 1), DELTA));
  }
  await time.pass(300);
  assertEquals(textOf((await reader.read()).value), "data: 10\n\n");
  await reader.cancel();
});

Deno.test("a client that was slow once is not blamed for an upstream that breaks off after a long silence", async () => {
  using time = simulateTime(0);
  const { feed, give } = handFed();
  give(step("0", START, DELTA));
  const reader = (await bodyOf({ feed, keepAlive: ": alive\n", keepAliveMs: 10_000 })).getReader();
  assertEquals(textOf((await reader.read()).value), "data: 0\n\n");
  give(step("1", DELTA));
  assertEquals(textOf((await reader.read()).value), "data: 1\n\n");
  // The client takes three seconds, then the upstream eleven.
  await time.pass(3_000);
  const next = reader.read();
  await time.pass(10_000);
  assertEquals(textOf((await next).value), ": alive\n");
  const last = reader.read();
  await time.pass(1_000);
  give(new GatewayError("upstream", "Broken"));
  assertEquals(textOf((await last).value), "data: failed: upstream\n\n");
  await reader.cancel();
});

Deno.test("a stream releases the feed when the client disconnects, even during a read", async () => {
  const { feed, give, over } = handFed();
  give(step("1", DELTA));
  const reader = (await bodyOf({ feed, ...QUIET })).getReader();
  await reader.read();
  const reading = reader.read();
  await reader.cancel();
  assertEquals((await reading).done, true);
  assertEquals(over(), 1);
  // Later output of the feed is ignored.
  give(new GatewayError("upstream", "Broken"));
  await new Promise((resolve) => setTimeout(resolve, 5));
  assert(over() >= 1);
});

Deno.test("a stream sends a long step in several chunks, one per event loop turn, before the next step", async () => {
  const { feed, give } = handFed();
  const long = "字🙂".repeat(300_000);
  give(step(long, START, DELTA));
  give(step("2"));
  give(undefined);
  let turns = 0;
  const turning = setInterval(() => turns++, 0);
  try {
    const chunks = await Array.fromAsync(await bodyOf({ feed, ...QUIET }), (chunk) => ({ chunk, turns }));
    assert(new Set(chunks.map(({ turns }) => turns)).size > 2);
    assert(chunks.every(({ chunk }) => chunk.length < 1_000_000));
    assert(chunks.map(({ chunk }) => textOf(chunk)).join("") === `data: ${long}\n\ndata: 2\n\n`);
  } finally {
    clearInterval(turning);
  }
});

Deno.test("a stream gives no more of a long step to a client that has disconnected", async () => {
  const { feed, give, over } = handFed();
  give(step("字".repeat(1_000_000), START, DELTA));
  const reader = (await bodyOf({ feed, ...QUIET })).getReader();
  await reader.read();
  const next = reader.read();
  await reader.cancel();
  // The turn in which the next piece would have been delivered.
  await yieldToEventLoop();
  assertEquals([(await next).done, over()], [true, 1]);
});

Deno.test("a stream sends no keep-alive between the pieces of a long step", async () => {
  using time = simulateTime(0);
  const { feed, give } = handFed();
  give(step("x".repeat(300_000), START, DELTA));
  give(undefined);
  const reader = (await bodyOf({ feed, keepAlive: ": alive\n", keepAliveMs: 2_000 })).getReader();
  const first = await reader.read();
  // Others take the turns of the event loop until the interval has passed.
  for (let turn = 0; turn < 100; turn++) void yieldToEventLoop();
  const next = reader.read();
  await time.pass(3_000);
  assertEquals(textOf(first.value) + textOf((await next).value), `data: ${"x".repeat(300_000)}\n\n`);
  assertEquals((await reader.read()).done, true);
});

Deno.test("the long steps of a key's streams take turns with those of other keys", async () => {
  const order: string[] = [];
  const readers = await Promise.all(["a", "a", "a", "b"].map((key) =>
    runForKey(key, async () => {
      const { feed, give } = handFed();
      give(step("x".repeat(300_000), START, DELTA));
      return { key, reader: (await bodyOf({ feed, ...QUIET })).getReader() };
    })
  ));
  for (const { reader } of readers) await reader.read();
  await Promise.all(readers.map(({ key, reader }) => reader.read().then(() => order.push(key))));
  assertEquals(order.join(""), "abaa");
  for (const { reader } of readers) await reader.cancel();
});
