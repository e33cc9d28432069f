import { assert, assertEquals, assertInstanceOf, assertRejects, assertStrictEquals } from "@std/assert";
import { ListenError } from "../../lib/cli/listen.ts";
import { ConfigError } from "../../lib/config.ts";
import { GatewayError } from "../../lib/errors.ts";
import { StoreError } from "../../lib/store/store.ts";
import { Stop, type StopSignal } from "../../lib/stop.ts";
import { deskOf } from "../../lib/workers/wire.ts";
import { openWires } from "./wires.ts";

/** An offer that keeps what it is called with. */
class Counter {
  readonly seen: unknown[] = [];

  take(...values: unknown[]): Promise<unknown> {
    this.seen.push(values);
    return Promise.resolve(values[0]);
  }

  count(): number {
    return this.seen.length;
  }

  fail(thrown: () => unknown): never {
    throw thrown();
  }
}

const COUNTER = deskOf<Counter>("desk", { take: true, count: true, fail: true });

Deno.test("a call has the arguments and gives the value that it would have here", async () => {
  using wires = openWires();
  const desk = new Counter();
  wires.other.offer(COUNTER, desk);
  const remote = wires.one.remote(COUNTER);
  const values = [
    12n,
    -0,
    undefined,
    new Map([["a", 1]]),
    new Uint8Array([1, 2, 3]),
    { amount: 2n ** 70n, list: [null, "ü"] },
    new Date(5),
  ];
  for (const value of values) assertEquals(await remote.take(value, 7), value);
  assertEquals(desk.seen, values.map((value) => [value, 7]));
  assertEquals(await remote.count(), values.length);
});

Deno.test("a long list comes as it was given, in parts, with other answers between", async () => {
  using wires = openWires();
  const desk = deskOf<{ give(length: number, last?: unknown): Promise<unknown[]> }>("lists", { give: true });
  const list = (length: number, last: unknown) => [...Array.from({ length: length - 1 }, (_, at) => ({ at })), last];
  wires.other.offer(desk, { give: (length, last) => Promise.resolve(list(length, last)) });
  const remote = wires.one.remote(desk);
  for (const length of [1, 999, 1000, 1001, 2000, 2001, 5500]) {
    assertEquals(await remote.give(length, { at: length - 1 }), list(length, { at: length - 1 }));
  }
  const order: string[] = [];
  const long = remote.give(5500, 0).then((found) => order.push(`long ${found.length}`));
  await Promise.all([long, remote.give(1).then(() => order.push("short"))]);
  assertEquals(order, ["short", "long 5500"]);
  // A part that cannot be sent is told once, and what comes after it is nobody's.
  const odd = deskOf<{ give(): Promise<unknown[]> }>("odd", { give: true });
  wires.other.offer(odd, { give: () => Promise.resolve([() => {}, ...list(3000, 0)]) });
  await assertRejects(() => wires.one.remote(odd).give(), DOMException);
  assertEquals((await remote.give(1500, 0)).length, 1500);
});

Deno.test("both ends offer and call over one wire, and a method may stand in the place of another", async () => {
  using wires = openWires();
  const names = deskOf<{ name(): string | Promise<string> }>("desk", { name: true });
  wires.one.offer(names, { name: () => "one" });
  wires.other.offer(COUNTER, new Counter(), { count: () => 77 });
  assertEquals(await wires.other.remote(names).name(), "one");
  const desk = wires.one.remote(COUNTER);
  assertEquals([await desk.count(), await desk.take(3)], [77, 3]);
});

const ERRORS: readonly Error[] = [
  new GatewayError("limited", "Too many", {
    param: "model",
    code: "insufficient_quota",
    headers: { "x-a": "b" },
    retryAfterMs: 1200.5,
    final: true,
    fault: "credit",
    cause: new RangeError("deep"),
  }),
  new RangeError("Cannot keep it", { cause: new TypeError("why") }),
  new TypeError("no"),
  new SyntaxError("no"),
  new StoreError("Cannot open", { cause: "a text" }),
  new ConfigError(["a: one", "b: two"]),
  new ListenError("Cannot listen"),
  new DOMException("gone", "AbortError"),
  Object.assign(new Error("disk I/O error"), { name: "SqliteError" }),
];

Deno.test("what is thrown at the other end is here what it was there", async () => {
  using wires = openWires();
  let next: unknown;
  const desk = deskOf<{ fail(): Promise<void> }>("desk", { fail: true });
  wires.other.offer(desk, {
    fail() {
      throw next;
    },
  });
  const remote = wires.one.remote(desk);
  for (const error of ERRORS) {
    next = error;
    const thrown = await assertRejects(() => remote.fail());
    assertInstanceOf(thrown, error.constructor as typeof Error);
    assertEquals([thrown.name, thrown.message, String(thrown.cause)], [error.name, error.message, String(error.cause)]);
    if (error instanceof GatewayError) assertEquals({ ...thrown }, { ...error });
    if (error instanceof ConfigError) assertEquals((thrown as ConfigError).problems, error.problems);
  }
  next = "no error at all";
  assertEquals(await remote.fail().catch((thrown) => thrown), next);
  const circle = new Error("round");
  circle.cause = circle;
  next = circle;
  assertEquals((await assertRejects(() => remote.fail(), Error)).message, "round");
});

Deno.test("calls do not wait for each other, and come in their order", async () => {
  using wires = openWires();
  const order: number[] = [];
  const gates = Array.from({ length: 3 }, () => Promise.withResolvers<void>());
  const desk = deskOf<{ wait(index: number): Promise<number> }>("desk", { wait: true });
  wires.other.offer(desk, {
    async wait(index: number) {
      order.push(index);
      await gates[index]?.promise;
      return index;
    },
  });
  const { wait } = wires.one.remote(desk);
  const waiting = [0, 1, 2].map((index) => wait(index));
  gates[2]?.resolve();
  assertEquals(await waiting[2], 2);
  assertEquals(order, [0, 1, 2]);
  gates[0]?.resolve();
  gates[1]?.resolve();
  assertEquals(await Promise.all(waiting), [0, 1, 2]);
});

Deno.test("a call for which nobody waits is not answered", async () => {
  using wires = openWires();
  const desk = new Counter();
  wires.other.offer(COUNTER, desk);
  const told = wires.one.told(COUNTER);
  assertEquals(told.take(1), undefined);
  told.fail(undefined as unknown as () => unknown);
  assertEquals(await wires.one.remote(COUNTER).count(), 1);
  assertEquals(wires.messages.length, 3);
});

Deno.test("a call that cannot be sent, or is for nothing that is offered, rejects", async () => {
  using wires = openWires();
  const counter = Object.assign(new Counter(), { hidden: () => 1 });
  const wider = deskOf<typeof counter & { gone(): Promise<void> }>("desk", {
    take: true,
    count: true,
    fail: true,
    hidden: true,
    gone: true,
  });
  wires.other.offer(COUNTER, counter);
  const remote = wires.one.remote(wider);
  await assertRejects(() => remote.take(() => {}), DOMException);
  await assertRejects(() => remote.gone(), TypeError, 'Cannot call "desk.gone": it is not offered');
  await assertRejects(async () => await remote.hidden(), TypeError, "not offered");
  await assertRejects(() => wires.one.remote({ ...COUNTER, name: "other" }).take(), TypeError, "not offered");
  // What is no method is not there.
  assertEquals(Object.keys(wires.one.remote(COUNTER)), ["take", "count", "fail"]);
  // A value that cannot be sent is told, too.
  const odd = deskOf<{ give(): Promise<() => void> }>("odd", { give: true });
  wires.other.offer(odd, { give: () => Promise.resolve(() => {}) });
  await assertRejects(() => wires.one.remote(odd).give(), DOMException);
});

Deno.test("what cannot be sent does not keep from going what is sent beside it", async () => {
  using wires = openWires();
  const counter = new Counter();
  wires.other.offer(COUNTER, counter);
  const remote = wires.one.remote(COUNTER);
  const outcomes = await Promise.allSettled([remote.take(1), remote.take(() => {}), remote.take(2)]);
  assertEquals(outcomes.map(({ status }) => status), ["fulfilled", "rejected", "fulfilled"]);
  assertEquals(counter.seen, [[1], [2]]);
});

Deno.test("a signal that a call is given last is there over there: before, while it is answered, and at the wire's end", async () => {
  using wires = openWires();
  const seen: unknown[] = [];
  let asked = Promise.withResolvers<void>();
  const desk = deskOf<{ wait(name: string, signal?: StopSignal): Promise<void> }>("desk", { wait: true });
  wires.other.offer(desk, {
    wait(name, signal) {
      const given = Promise.withResolvers<void>();
      const handleEvent = () => {
        seen.push(name);
        given.reject(signal?.reason);
      };
      if (signal === undefined) given.resolve();
      signal?.addEventListener("abort", { handleEvent });
      asked.resolve();
      return given.promise;
    },
  });
  const { wait } = wires.one.remote(desk);
  await wait("none");
  await wait("none", undefined);
  const [before, meanwhile, never] = [new Stop(), new AbortController(), new Stop()];
  before.abort();
  await assertRejects(() => wait("before", before), DOMException);
  asked = Promise.withResolvers();
  const answer = wait("meanwhile", meanwhile.signal);
  await asked.promise;
  assertEquals(seen, ["before"]);
  meanwhile.abort();
  assertEquals((await assertRejects(() => answer, DOMException)).name, "AbortError");
  asked = Promise.withResolvers();
  const left = wait("end", never);
  await asked.promise;
  wires.other.close(new RangeError("It has ended"));
  assertEquals(seen, ["before", "meanwhile", "end"]);
  wires.one.close(new RangeError("It has ended"));
  await assertRejects(() => left, RangeError);
});

Deno.test("a wire that is closed tells the reason to all who wait, and calls nothing any more", async () => {
  using wires = openWires();
  const desk = deskOf<{ never(): Promise<void> }>("desk", { never: true });
  wires.other.offer(desk, { never: () => new Promise<void>(() => {}) });
  const { never } = wires.one.remote(desk);
  const waiting = [never(), never()];
  await Promise.resolve();
  const reason = new GatewayError("overloaded", "It has ended");
  wires.one.close(reason);
  for (const one of [...waiting, never()]) assertStrictEquals(await one.catch((error) => error), reason);
  wires.one.told(desk).never();
  assert(wires.messages.length === 2);
});
