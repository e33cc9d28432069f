import { assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { abortSignalOf, Stop, type StopSignal } from "../lib/stop.ts";

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
