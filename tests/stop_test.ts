import { assertEquals, assertRejects, assertStrictEquals, assertThrows } from "@std/assert";
import { abortSignalOf, Stop, type StopSignal, whileWanted } from "../lib/stop.ts";

/** What listeners see of a signal, in the order in which they are told. */
function watch(signal: StopSignal, name: string, seen: string[]): { handleEvent(): void } {
  const listener = { handleEvent: () => void seen.push(`${name} ${signal.aborted} ${signal.reason}`) };
  signal.addEventListener("abort", listener);
  return listener;
}

const SIGNALS: Record<string, () => { signal: StopSignal; abort: (reason?: unknown) => void }> = {
  Stop() {
    const stop = new Stop();
    return { signal: stop, abort: (reason) => stop.abort(reason) };
  },
  AbortSignal() {
    const control = new AbortController();
    return { signal: control.signal, abort: (reason) => control.abort(reason) };
  },
};

for (const [name, create] of Object.entries(SIGNALS)) {
  Deno.test(`${name}: a promise is waited for as long as it is wanted, and what comes of it later is nobody's`, async () => {
    const { signal, abort } = create();
    assertEquals(await whileWanted(Promise.resolve(1), signal), 1);
    await assertRejects(() => whileWanted(Promise.reject(new Error("broken")), signal), Error, "broken");
    const late = Promise.withResolvers<never>();
    const waiting = whileWanted(late.promise, signal);
    abort(new RangeError("enough"));
    await assertRejects(() => waiting, RangeError, "enough");
    const later = Promise.withResolvers<never>();
    await assertRejects(() => whileWanted(later.promise, signal), RangeError, "enough");
    await assertRejects(() => whileWanted(Promise.resolve(1), signal), RangeError, "enough");
    // Neither is an unhandled rejection.
    late.reject(new Error("late"));
    later.reject(new Error("later"));
    await new Promise((resolve) => setTimeout(resolve, 0));
  });

  Deno.test(`${name}: all are told once, with the first reason, but for those that have left`, () => {
    const seen: string[] = [];
    const { signal, abort } = create();
    signal.throwIfAborted();
    watch(signal, "first", seen);
    const other = watch(signal, "other", seen);
    watch(signal, "last", seen);
    signal.removeEventListener("abort", other);
    signal.removeEventListener("abort", { handleEvent() {} });
    assertEquals([signal.aborted, signal.reason], [false, undefined]);
    abort("over");
    abort("again");
    watch(signal, "late", seen);
    assertEquals(seen, ["first true over", "last true over"]);
    assertEquals(assertThrowsWith(() => signal.throwIfAborted()), "over");
  });

  Deno.test(`${name}: without a reason it is an AbortError`, () => {
    const { signal, abort } = create();
    abort();
    assertEquals((signal.reason as Error).name, "AbortError");
  });

  Deno.test(`${name}: a Stop that follows it is given up with it, also where it was before`, () => {
    const { signal, abort } = create();
    const [early, late] = [new Stop(), new Stop()];
    early.follow(signal);
    assertEquals(early.aborted, false);
    abort("over");
    late.follow(signal);
    assertEquals([early.aborted, early.reason, late.aborted, late.reason], [true, "over", true, "over"]);
  });

  Deno.test(`${name}: the platform's own signal of it says the same, early and late`, () => {
    const { signal, abort } = create();
    const early = abortSignalOf(signal);
    assertEquals([early instanceof AbortSignal, early.aborted], [true, false]);
    abort("over");
    const late = abortSignalOf(signal);
    assertEquals([early.aborted, early.reason, late.aborted, late.reason], [true, "over", true, "over"]);
  });
}

Deno.test("Stop: a listener may take itself and others off while all are told", () => {
  const stop = new Stop();
  const seen: string[] = [];
  const first = {
    handleEvent() {
      seen.push("first");
      stop.removeEventListener("abort", first);
      stop.abort("again");
    },
  };
  stop.addEventListener("abort", first);
  watch(stop, "last", seen);
  stop.abort("over");
  assertEquals(seen, ["first", "last true over"]);
});

Deno.test("abortSignalOf(): the platform's own signal stays what it is", () => {
  const { signal } = new AbortController();
  assertStrictEquals(abortSignalOf(signal), signal);
});

function assertThrowsWith(work: () => void): unknown {
  let thrown: unknown;
  assertThrows(() => {
    try {
      work();
    } catch (error) {
      thrown = error;
      throw new Error("thrown");
    }
  });
  return thrown;
}
