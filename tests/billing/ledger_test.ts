import { assert, assertEquals, assertRejects } from "@std/assert";
import { GatewayError } from "../../lib/errors.ts";
import { createLedger, type Ledger } from "../../lib/billing/ledger.ts";
import type { Entry, LedgerStore } from "../../lib/store/ledger.ts";
import { openMemoryStore } from "../../lib/store/sqlite/memory.ts";
import { entryOf, holdOf } from "./entries.ts";
import { type Clock, createClock, settle } from "./simulator/clock.ts";
import { availableIn } from "../support/available.ts";

/** A ledger over a store in memory whose writes can be blocked or made to fail. */
interface Bench {
  ledger: Ledger;
  store: LedgerStore;
  clock: Clock;
  /** Ids of each write that was tried. */
  writes: string[][];
  events: string[];
  /** Returns whether the current write fails. */
  fails: (entries: readonly Entry[]) => boolean;
  /** Blocks writes until it resolves. */
  open: Promise<void>;
}

function benchOf(changed: Partial<LedgerStore> = {}): Bench {
  const clock = createClock();
  const store = openMemoryStore().ledger;
  const ledger = createLedger({
    store: Object.defineProperties({
      ...store,
      async append(entries: readonly Entry[]) {
        bench.writes.push(entries.map(({ id }) => id));
        await bench.open;
        if (bench.fails(entries)) throw new Error("Disk full");
        return await store.append(entries);
      },
    }, Object.getOwnPropertyDescriptors(changed)),
    now: clock.now,
    monotonic: clock.monotonic,
    later: clock.later,
    log: ({ event }) => void bench.events.push(event),
  });
  const bench: Bench = {
    ledger,
    store,
    clock,
    writes: [],
    events: [],
    fails: () => false,
    open: Promise.resolve(),
  };
  return bench;
}

/** The state of a promise, without waiting for it. */
async function stateOf(promise: Promise<unknown>): Promise<string> {
  let state = "pending";
  promise.then((value) => state = `resolved: ${value}`, () => state = "rejected");
  await settle();
  return state;
}

async function idsIn(store: LedgerStore): Promise<string[]> {
  return (await store.entries({ after: 0, limit: 100_000 })).map(({ id }) => id);
}

Deno.test("EntryQueue writes the first entry at once, and later ones together, at most 256 at a time", async () => {
  const bench = benchOf();
  const gate = Promise.withResolvers<void>();
  bench.open = gate.promise;
  const entered = Array.from({ length: 600 }, (_, i) => bench.ledger.enter(entryOf(`${i}`)));
  assertEquals(bench.writes.map(({ length }) => length), [1]);
  gate.resolve();
  await bench.clock.pass(1);
  assertEquals(new Set(await Promise.all(entered)), new Set([true]));
  assertEquals(bench.writes.map(({ length }) => length), [1, 256, 256, 87]);
  assertEquals(await idsIn(bench.store), entered.map((_, i) => `${i}`));
});

/** A ledger whose last batch had eight entries. */
async function busyBench(): Promise<Bench & { sizes: () => number[]; enter: (count: number) => Promise<void> }> {
  const bench = benchOf();
  let entered = 0;
  const enter = async (count: number) => {
    for (let i = 0; i < count; i++) void bench.ledger.enter(entryOf(`${entered++}`));
    await settle();
  };
  const gate = Promise.withResolvers<void>();
  bench.open = gate.promise;
  await enter(9);
  gate.resolve();
  await settle();
  const sizes = () => bench.writes.map(({ length }) => length);
  assertEquals(sizes(), [1, 8]);
  return { ...bench, sizes, enter };
}

Deno.test("EntryQueue waits under load for three quarters of the previous batch", async () => {
  const { sizes, enter } = await busyBench();
  await enter(5);
  assertEquals(sizes(), [1, 8]);
  await enter(1);
  assertEquals(sizes(), [1, 8, 6]);
  await enter(5);
  assertEquals(sizes(), [1, 8, 6, 5]);
});

Deno.test("EntryQueue waits a millisecond under load, and not for a batch that ended long ago", async () => {
  const { sizes, enter, clock } = await busyBench();
  await enter(5);
  await clock.pass(0.9);
  assertEquals(sizes(), [1, 8]);
  await clock.pass(0.1);
  assertEquals(sizes(), [1, 8, 5]);
  await clock.pass(10);
  await enter(1);
  assertEquals(sizes(), [1, 8, 5, 1]);
});

Deno.test("EntryQueue.flush() does not wait for more entries under load", async () => {
  const { sizes, enter, ledger, clock } = await busyBench();
  await ledger.flush();
  await enter(2);
  assertEquals(sizes(), [1, 8], "after a flush they do again");
  await ledger.flush();
  assertEquals(sizes(), [1, 8, 2]);
  await enter(1);
  await ledger.close();
  assertEquals(sizes(), [1, 8, 2, 1]);
  assertEquals(clock.timers, 0);
});

Deno.test("EntryQueue retries failed writes with growing pauses, and writes entries once", async () => {
  const bench = benchOf();
  bench.fails = () => bench.writes.length < 5;
  const entered = [bench.ledger.enter(entryOf("a")), bench.ledger.enter(entryOf("b"))];
  assertEquals(bench.ledger.healthy, true);
  await settle();
  assertEquals(bench.ledger.healthy, false);
  await bench.clock.pass(20 + 40 + 80);
  assertEquals(bench.writes.length, 4);
  await bench.clock.pass(160);
  assertEquals(await Promise.all(entered), [true, true]);
  assertEquals((await idsIn(bench.store)).sort(), ["a", "b"]);
  assertEquals(bench.ledger.healthy, true);
  assertEquals(bench.events, ["ledger_failed", "ledger_recovered"]);
});

Deno.test("EntryQueue.enter() rejects after 5 seconds and withdraws the entry", async () => {
  const bench = benchOf();
  let isAway = true;
  bench.fails = () => isAway;
  const entered = bench.ledger.enter(entryOf("a"));
  assertEquals(await stateOf(entered), "pending");
  await bench.clock.pass(4_900);
  assertEquals(await stateOf(entered), "pending");
  await bench.clock.pass(1_200);
  const error = await assertRejects(() => entered, GatewayError);
  assertEquals([error.kind, error.retryAfterMs], ["overloaded", 1_000]);
  isAway = false;
  assertEquals(bench.ledger.healthy, false);
  const next = bench.ledger.enter(entryOf("b"));
  await bench.clock.pass(1_000);
  assertEquals(await next, true);
  assertEquals(await idsIn(bench.store), ["b"]);
  assertEquals(bench.ledger.healthy, true);
});

Deno.test("EntryQueue finds out by itself that the store can be written again, also without entries", async () => {
  const bench = benchOf();
  bench.fails = () => true;
  const entered = bench.ledger.enter(entryOf("a"));
  entered.catch(() => {});
  await bench.clock.pass(60_000);
  assertEquals([await stateOf(entered), bench.ledger.healthy], ["rejected", false]);
  bench.fails = () => false;
  await bench.clock.pass(1_000);
  assertEquals([bench.ledger.healthy, bench.clock.timers], [true, 0]);
  assertEquals([bench.events, await idsIn(bench.store)], [
    ["ledger_failed", "entry_not_written", "ledger_recovered"],
    [],
  ]);
});

Deno.test("EntryQueue.close() ends the test writes of a store that fails", async () => {
  const bench = benchOf();
  bench.fails = () => true;
  bench.ledger.enter(entryOf("a")).catch(() => {});
  await bench.clock.pass(20_000);
  await bench.ledger.close();
  await settle();
  const { length } = bench.writes;
  assertEquals(bench.clock.timers, 0);
  await bench.clock.pass(5_000);
  assertEquals(bench.writes.length, length);
});

Deno.test("EntryQueue.note() keeps entries through an outage of a minute", async () => {
  const bench = benchOf();
  let isAway = true;
  bench.fails = () => isAway;
  await bench.ledger.note(entryOf("old"));
  await bench.clock.pass(40_000);
  await bench.ledger.note(entryOf("new"));
  await bench.clock.pass(30_000);
  isAway = false;
  await bench.clock.pass(1_000);
  assertEquals(await idsIn(bench.store), ["new"]);
  assertEquals(bench.events, ["ledger_failed", "entry_not_written", "ledger_recovered"]);
});

Deno.test("EntryQueue waits for all entries above 10,000", async () => {
  const bench = benchOf();
  const gate = Promise.withResolvers<void>();
  bench.open = gate.promise;
  for (let i = 0; i < 10_000; i++) void bench.ledger.note(entryOf(`${i}`, { ending: "failed" }));
  const late = bench.ledger.note(entryOf("late", { ending: "failed" }));
  assertEquals(await stateOf(late), "pending");
  gate.resolve();
  await bench.ledger.flush();
  await late;
  assertEquals((await idsIn(bench.store)).length, 10_001);
  assertEquals(await stateOf(bench.ledger.note(entryOf("next"))), "resolved: undefined");
});

Deno.test("EntryQueue lets a caller wait at most 5 seconds during a flood", async () => {
  const bench = benchOf();
  bench.fails = () => true;
  for (let i = 0; i < 10_000; i++) void bench.ledger.note(entryOf(`${i}`, { ending: "failed" }));
  const late = bench.ledger.note(entryOf("late", { ending: "failed" }));
  await bench.clock.pass(4_000);
  assertEquals(await stateOf(late), "pending");
  await bench.clock.pass(2_500);
  assertEquals(await stateOf(late), "resolved: undefined");
});

Deno.test("EntryQueue isolates an entry that cannot be written, and stays healthy", async () => {
  for (const isWaitedFor of [true, false]) {
    const bench = benchOf();
    bench.fails = (entries) => entries.some(({ id }) => id === "bad");
    const others = Array.from({ length: 20 }, (_, i) => bench.ledger.enter(entryOf(`${i}`)));
    const bad = isWaitedFor ? bench.ledger.enter(entryOf("bad")) : bench.ledger.note(entryOf("bad"));
    const more = Array.from({ length: 20 }, (_, i) => bench.ledger.enter(entryOf(`more ${i}`)));
    bad.catch(() => {});
    await bench.clock.pass(2_000);
    assertEquals(new Set(await Promise.all([...others, ...more])), new Set([true]));
    assertEquals(await stateOf(bad), isWaitedFor ? "rejected" : "resolved: undefined");
    assertEquals((await idsIn(bench.store)).includes("bad"), false);
    assertEquals(await bench.ledger.enter(entryOf("after")), true);
    assertEquals(bench.ledger.healthy, true);
  }
});

Deno.test("EntryQueue gives up an entry with unstorable numbers at once", async () => {
  const { ledger, store, events } = benchOf();
  const others = Array.from({ length: 20 }, (_, i) => ledger.enter(entryOf(`${i}`)));
  const bad = ledger.enter(entryOf("bad", { cost: -1n }));
  bad.catch(() => {});
  await ledger.flush();
  await assertRejects(() => bad, GatewayError);
  await ledger.note(entryOf("bad, too", { totalMs: 0.5 }));
  assertEquals(new Set(await Promise.all(others)), new Set([true]));
  await ledger.flush();
  assertEquals((await idsIn(store)).length, 20);
  assertEquals(events, ["entry_not_written", "entry_not_written"]);
  assertEquals(ledger.healthy, true);
});

Deno.test("the ledger stores 600 refusals per key and minute, and counts the others", async () => {
  const logged: unknown[] = [];
  const clock = createClock();
  const store = openMemoryStore().ledger;
  const ledger = createLedger({
    ...{ store, now: clock.now, monotonic: clock.monotonic, later: clock.later },
    log: (line) => void logged.push(line),
  });
  const refuse = async (prefix: string, count: number, members: Partial<Entry> = {}) => {
    for (let i = 0; i < count; i++) await ledger.note(entryOf(`${prefix}${i}`, members));
    await ledger.flush();
  };
  const size = async () => (await idsIn(store)).length;
  await refuse("a", 610);
  assertEquals(await size(), 600);
  // Another key, and requests that failed after an attempt, have theirs.
  await refuse("b", 1, { keyId: "key_b" });
  await refuse("failed", 1, { ending: "failed", attempts: 1 });
  assertEquals(await size(), 602);
  await clock.pass(60_001);
  const line = { level: "warn", event: "refusals_not_written", key_id: "key_a", count: 10 };
  assertEquals(logged, [line]);
  await refuse("c", 601);
  assertEquals(await size(), 1_202);
  await ledger.close();
  assertEquals(logged, [line, { ...line, count: 1 }]);
});

Deno.test("refusals beyond the quota release their holds without entries", async () => {
  let isAway = false;
  const inMemory = openMemoryStore().ledger;
  const { ledger, store, clock } = benchOf({
    hold: inMemory.hold,
    release: (ids) => isAway ? Promise.reject(new Error("Away")) : inMemory.release(ids),
  });
  for (let i = 0; i < 600; i++) await ledger.note(entryOf(`a${i}`));
  await ledger.hold(holdOf("held"), 60_000);
  assertEquals((await inMemory.holds()).map(({ id }) => id), ["held"]);
  await ledger.note(entryOf("held", { held: 100n }));
  assertEquals(await inMemory.holds(), []);
  isAway = true;
  await ledger.hold(holdOf("away"), 60_000);
  await ledger.note(entryOf("away", { held: 100n }));
  await ledger.flush();
  assertEquals((await idsIn(store)).slice(600), ["away"]);
  await clock.pass(60_001);
  await ledger.close();
});

Deno.test("EntryQueue is unhealthy during a hanging write", async () => {
  const bench = benchOf();
  const gate = Promise.withResolvers<void>();
  bench.open = gate.promise;
  const entered = bench.ledger.enter(entryOf("a"));
  await bench.clock.pass(4_999);
  assertEquals(bench.ledger.healthy, true);
  await bench.clock.pass(1);
  assertEquals(bench.ledger.healthy, false);
  gate.resolve();
  assertEquals(await entered, true);
  assertEquals(bench.ledger.healthy, true);
});

Deno.test("a hold lives as long as its request may last, plus a minute", async () => {
  const { ledger, store, clock, events } = benchOf();
  assertEquals(await ledger.hold(holdOf("a"), 105_000), { held: true });
  for (let passed = 0; passed < 160_000; passed += 10_000) {
    await clock.pass(10_000);
    assertEquals((await store.holds()).length, 1, `after ${passed + 10_000} ms`);
  }
  await clock.pass(20_000);
  assertEquals(await store.holds(), []);
  assertEquals((await store.find("a"))?.ending, "lost");
  assertEquals(events, ["hold_expired"]);
  assertEquals(await ledger.enter(entryOf("a", { ending: "end", cost: 100n })), false);
  await clock.pass(60_000);
  assertEquals(clock.timers, 0);
});

Deno.test("a hold ends with its entry, and is not renewed afterwards", async () => {
  const renewed: string[][] = [];
  const { ledger, store, clock } = benchOf({
    renew(ids) {
      renewed.push([...ids]);
      return Promise.resolve();
    },
  });
  await ledger.hold(holdOf("a"), 600_000);
  await ledger.hold(holdOf("b"), 600_000);
  assertEquals(clock.timers, 1);
  await clock.pass(20_000);
  await ledger.note(entryOf("a"));
  await clock.pass(20_000);
  await ledger.note(entryOf("b"));
  await clock.pass(60_000);
  assertEquals(renewed, [["a", "b"], ["b"]]);
  assertEquals(await store.holds(), []);
  assertEquals(clock.timers, 0);
});

Deno.test("thousands of leases are renewed by several calls", async () => {
  const renewed: number[] = [];
  const { ledger, clock } = benchOf({
    renew(ids) {
      renewed.push(ids.length);
      return Promise.resolve();
    },
  });
  for (let i = 0; i < 2_500; i++) await ledger.hold(holdOf(`${i}`, { amount: 0n }), 600_000);
  await clock.pass(20_000);
  assertEquals(renewed, [1_000, 1_000, 500]);
  await ledger.close();
});

Deno.test("a refused hold is not renewed", async () => {
  const { ledger, store, clock } = benchOf();
  const answer = await ledger.hold(holdOf("a", { amount: 1_001n }), 600_000);
  assertEquals(answer.held, false);
  assertEquals(await store.holds(), []);
  await clock.pass(20_000);
  assertEquals(clock.timers, 0);
});

Deno.test("failed renewals are repeated within the lease", async () => {
  for (const [failures, held] of [[0, 1], [1, 1], [2, 1], [3, 0]] as const) {
    let left = failures;
    const store = openMemoryStore().ledger;
    const { ledger, clock, events } = benchOf({
      hold: store.hold,
      expire: store.expire,
      renew: (ids, until) => left-- > 0 ? Promise.reject(new Error("Busy")) : store.renew(ids, until),
    });
    await ledger.hold(holdOf("a"), 600_000);
    await clock.pass(80_000);
    assertEquals((await store.holds()).length, held, `after ${failures} failures`);
    assertEquals(events.filter((event) => event === "holds_not_renewed").length, failures);
  }
});

Deno.test("an amount that no store can hold is refused by the budget", async () => {
  const { ledger, store } = benchOf();
  const { held } = await ledger.hold(holdOf("a", { amount: 2n ** 63n }), 600_000);
  assertEquals([held, await store.holds()], [false, []]);
  await ledger.close();
});

Deno.test("a hold with an unknown outcome refuses the request, and expires", async () => {
  const store = openMemoryStore().ledger;
  let isVague = true;
  const { ledger, clock } = benchOf({
    expire: store.expire,
    renew: store.renew,
    async hold(hold) {
      if (isVague) await store.hold(hold);
      throw new Error("Connection lost");
    },
  });
  const error = await assertRejects(() => ledger.hold(holdOf("a"), 600_000), GatewayError);
  assertEquals(error.kind, "overloaded");
  assertEquals((await store.holds()).length, 1);
  await clock.pass(80_000);
  assertEquals((await store.holds()).length, 0);
  isVague = false;
  await assertRejects(() => ledger.hold(holdOf("b"), 600_000), GatewayError);
  await clock.pass(740_000);
  assertEquals(clock.timers, 0);
});

Deno.test("the hold of an entry that was given up expires with its lease", async () => {
  const bench = benchOf();
  bench.fails = () => true;
  await bench.ledger.hold(holdOf("a"), 600_000);
  const entered = bench.ledger.enter(entryOf("a"));
  entered.catch(() => {});
  await bench.clock.pass(7_000);
  assertEquals(await stateOf(entered), "rejected");
  assertEquals((await bench.store.holds()).length, 1);
  await bench.clock.pass(75_000);
  assertEquals((await bench.store.holds()).length, 0);
});

Deno.test("a renewal in progress at close() is the last one", async () => {
  const gate = Promise.withResolvers<void>();
  const { ledger, clock } = benchOf({ renew: () => gate.promise });
  await ledger.hold(holdOf("a"), 600_000);
  await clock.pass(20_000);
  await ledger.close();
  gate.resolve();
  await settle();
  assertEquals(clock.timers, 0);
});

Deno.test("a jump of the wall clock ends no lease", async () => {
  for (const jump of [86_400_000, -86_400_000]) {
    const { ledger, store, clock } = benchOf();
    await ledger.hold(holdOf("a"), 600_000);
    clock.jump(jump);
    await clock.pass(300_000);
    await ledger.sweep();
    assertEquals((await store.holds()).length, 1);
    await ledger.hold(holdOf("b"), 600_000);
    await clock.pass(400_000);
    assertEquals((await store.holds()).map(({ id }) => id), ["b"]);
  }
});

Deno.test("a sweep during a change of the wall clock voids no new hold", async () => {
  const gate = Promise.withResolvers<void>();
  const { ledger, store, clock } = benchOf({
    async expire(at) {
      await gate.promise;
      return await store.expire(at);
    },
  });
  const swept = ledger.sweep();
  clock.jump(-86_400_000);
  await ledger.hold(holdOf("a"), 600_000);
  gate.resolve();
  await swept;
  assertEquals((await store.holds()).map(({ id }) => id), ["a"]);
});

Deno.test("flush() waits for earlier entries, and close() for all and rejects later ones", async () => {
  const bench = benchOf();
  const gate = Promise.withResolvers<void>();
  bench.open = gate.promise;
  for (let i = 0; i < 300; i++) void bench.ledger.note(entryOf(`${i}`));
  await bench.ledger.hold(holdOf("held"), 600_000);
  const flushed = bench.ledger.flush();
  const closed = bench.ledger.close();
  assertEquals(await stateOf(flushed), "pending");
  assertEquals(await stateOf(closed), "pending");
  gate.resolve();
  await flushed;
  await closed;
  assertEquals((await idsIn(bench.store)).length, 300);
  await assertRejects(() => bench.ledger.enter(entryOf("late")), GatewayError);
  await bench.ledger.note(entryOf("late, too"));
  assertEquals((await idsIn(bench.store)).length, 300);
  assertEquals(bench.clock.timers, 0);
});

Deno.test("close() gives up after 5 seconds if nothing can be written", async () => {
  const bench = benchOf();
  bench.fails = () => true;
  await bench.ledger.note(entryOf("a"));
  const closed = bench.ledger.close();
  await bench.clock.pass(6_000);
  assert((await stateOf(closed)).startsWith("resolved"));
  assertEquals(bench.clock.timers, 0);
});

Deno.test("the ledger is healthy after a write while its store has space, and keeps a reserve for held requests", async () => {
  let isWritable = true;
  const bench = benchOf({
    get isWritable() {
      return isWritable;
    },
  });
  bench.fails = () => true;
  const entered = bench.ledger.enter(entryOf("a"));
  entered.catch(() => {});
  assertEquals(bench.ledger.healthy, true);
  await settle();
  assertEquals(bench.ledger.healthy, false);
  bench.fails = () => false;
  isWritable = false;
  await bench.ledger.note(entryOf("refused"));
  await bench.ledger.note(entryOf("held", { held: 100n }));
  await bench.clock.pass(5_000);
  assertEquals([await stateOf(entered), await idsIn(bench.store)], ["resolved: true", ["a", "held"]]);
  assertEquals(bench.events, ["ledger_failed", "entry_not_written", "ledger_recovered"]);
  assertEquals(bench.ledger.healthy, false);
  isWritable = true;
  assertEquals(bench.ledger.healthy, true);
});

Deno.test("errors of the store become retryable errors", async () => {
  const broken = () => Promise.reject(new Error("connection refused"));
  const bench = benchOf({ spending: broken, find: broken });
  const claim = { scope: "key", id: "key_a", budget: 1n, since: 0 } as const;
  for (const call of [() => availableIn(bench.ledger, claim), () => bench.ledger.find("a")]) {
    const error = await assertRejects(call, GatewayError, "cannot read its ledger");
    assertEquals([error.status, error.retryAfterMs], [503, 1000]);
  }
});
