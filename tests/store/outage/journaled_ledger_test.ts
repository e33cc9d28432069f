import { assert, assertEquals, assertRejects } from "@std/assert";
import { GatewayError } from "../../../lib/errors.ts";
import type { Entry, LedgerStore } from "../../../lib/store/ledger.ts";
import { openMemoryStore } from "../../../lib/store/sqlite/memory.ts";
import { openJournal } from "../../../lib/store/outage/journal.ts";
import { createJournaledLedger, type JournaledLedger } from "../../../lib/store/outage/journaled_ledger.ts";
import { type Clock, createClock } from "../../billing/simulator/clock.ts";
import { seeded } from "../../support/random.ts";
import { entry, hold, ofKey, readChain, testLedger } from "../behaviours_ledger.ts";
import { inFolder } from "../in_folder.ts";
import { rounds, skipInQuick } from "../../support/skip.ts";
import { availableIn } from "../../support/available.ts";

/** The driver's error without a server. */
class Unreachable extends Error {
  override readonly name = "Unreachable";
  readonly code = "ECONNREFUSED";
}

/** The current behaviour of a remote store. */
type Mood = "up" | "refuses" | "silent" | "forgets to answer";

/** A ledger that may be out of reach. */
function farAway(mood: () => Mood): LedgerStore {
  const ledger = openMemoryStore().ledger;
  const far = <Args extends unknown[], Result>(call: (...args: Args) => Promise<Result>) => (...args: Args) => {
    switch (mood()) {
      case "up":
        return call(...args);
      case "refuses":
        return Promise.reject(new Unreachable("connection refused"));
      case "silent":
        return new Promise<Result>(() => {});
      case "forgets to answer":
        return call(...args).then(() => Promise.reject(new Unreachable("connection lost")));
    }
  };
  return {
    hold: far(ledger.hold),
    spending: far(ledger.spending),
    spenders: far(ledger.spenders),
    renew: far(ledger.renew),
    release: far(ledger.release),
    append: far(ledger.append),
    expire: far(ledger.expire),
    holds: far(ledger.holds),
    find: far(ledger.find),
    entries: far(ledger.entries),
    entriesWithin: far(ledger.entriesWithin),
    durations: far(ledger.durations),
    usage: far(ledger.usage),
    upstreamDays: far(ledger.upstreamDays),
    sumsHead: far(ledger.sumsHead),
    sumsOfStep: far(ledger.sumsOfStep),
    sumUp: far(ledger.sumUp),
    days: far(ledger.days),
    prune: far(ledger.prune),
    search: far(ledger.search),
    topUsers: far(ledger.topUsers),
    userSums: far(ledger.userSums),
    lastSeq: far(ledger.lastSeq),
    start: far(ledger.start),
  };
}

interface World {
  folder: string;
  mood: Mood;
  clock: Clock;
  /** The remote ledger with its current behaviour. */
  far: LedgerStore;
  events: Record<string, unknown>[];
  /** Opens the ledger of a process that has just started. */
  open(
    parts?: { maxEntries?: number; journal?: boolean; leaseMs?: number; ledger?: LedgerStore },
  ): Promise<JournaledLedger>;
  /** Advances time until the condition holds. */
  until(holds: () => boolean): Promise<void>;
}

function inWorld(test: (world: World) => Promise<void>): Promise<void> {
  return inFolder(async (folder) => {
    const clock = createClock();
    const opened: JournaledLedger[] = [];
    const world: World = {
      folder,
      mood: "up",
      clock,
      far: farAway(() => world.mood),
      events: [],
      async open({ maxEntries = 1000, journal = true, leaseMs = 0, ledger = world.far } = {}) {
        const log = (line: Record<string, unknown>) => void world.events.push(line);
        const file = journal ? await openJournal(`${folder}/journal`, { maxEntries, log }) : undefined;
        const made = createJournaledLedger(ledger, {
          ...(file !== undefined && { journal: file }),
          isOutOfReach: (error) => error instanceof Unreachable,
          leaseMs,
          log,
          monotonic: clock.monotonic,
          later: clock.later,
          random: () => 0.5,
        });
        opened.push(made);
        return made;
      },
      async until(holds) {
        for (let turns = 0; !holds(); turns++) {
          assert(turns < 2000, "it never comes to that");
          await clock.pass(50);
          await new Promise((resolve) => setTimeout(resolve, 0));
        }
      },
    };
    try {
      await test(world);
    } finally {
      world.mood = "up";
      // A test may have closed it already.
      for (const each of opened) await each.close().catch(() => {});
    }
  });
}

async function idsIn(ledger: LedgerStore): Promise<string[]> {
  return (await readChain(ledger)).map(({ id }) => id);
}

function eventsOf({ events }: World): unknown[] {
  return events.map(({ event }) => event);
}

async function assertOverloaded(call: () => Promise<unknown>): Promise<void> {
  const error = await assertRejects(call, GatewayError, "Cannot reach the store");
  assertEquals([error.status, error.retryAfterMs !== undefined], [503, true]);
}

testLedger("a ledger with a journal", (test) => inWorld(async (world) => test(await world.open())));
if (!skipInQuick("Behaviours of a ledger that may have no journal")) {
  testLedger(
    "a ledger that may have no journal",
    (test) => inWorld(async (world) => test(await world.open({ journal: false }))),
  );
}

Deno.test("JournaledLedger stores entries during an outage, and writes them once and in order afterwards", async () => {
  for (const mood of ["refuses", "silent"] as const) {
    await inWorld(async (world) => {
      const { clock } = world;
      const ledger = await world.open();
      assertEquals(await ledger.append([entry({ id: "before" })]), [true]);
      world.mood = mood;
      const first = ledger.append([entry({ id: "a" }), entry({ id: "b" })]);
      if (mood === "silent") await clock.pass(2_000);
      assertEquals(await first, [true, true]);
      // No time passes: the store is not called again.
      assertEquals(await ledger.append([entry({ id: "c" })]), [true]);
      assertEquals([ledger.reach().up, ledger.reach().waiting, ledger.isWritable], [false, 3, true]);
      await clock.pass(10_000);
      assert(ledger.reach().downMs >= 10_000);
      world.mood = "up";
      await world.until(() => eventsOf(world).includes("journal_replayed"));
      assertEquals(ledger.reach(), { up: true, downMs: 0, waiting: 0 });
      assertEquals(await ledger.append([entry({ id: "after" }), entry({ id: "a" })]), [true, false]);
      assertEquals(await idsIn(world.far), ["before", "a", "b", "c", "after"]);
      assertEquals(eventsOf(world), ["store_down", "journal_replayed"]);
      await clock.pass(1_000);
      assertEquals(eventsOf(world), ["store_down", "journal_replayed", "store_up"]);
    });
  }
});

Deno.test("JournaledLedger rejects other calls at once during an outage, with a retryable error", () =>
  inWorld(async (world) => {
    const ledger = await world.open();
    world.mood = "refuses";
    const calls: (() => Promise<unknown>)[] = [
      () => ledger.hold(hold()),
      () => availableIn(ledger, ofKey(1n)),
      () => ledger.renew(["r1"], 1),
      () => ledger.find("r1"),
      () => ledger.holds(),
      () => ledger.entries({ after: 0, limit: 1 }),
      () => ledger.entriesWithin({ since: 0, after: 0, until: 1, limit: 1 }),
      () => ledger.usage({ since: 0, until: 1, by: "day" }),
      () => ledger.days(0),
      () => ledger.prune(1, Infinity),
      () => ledger.start(),
    ];
    for (const call of calls) await assertOverloaded(call);
    // Known to be unreachable: it is not called, so its silence costs no time.
    world.mood = "silent";
    for (const call of calls) await assertOverloaded(call);
    await world.clock.pass(1_000);
    assertEquals(eventsOf(world), ["store_down"]);
  }));

Deno.test("JournaledLedger stays reachable if only a report fails, which has connections of its own", () =>
  inWorld(async (world) => {
    const ledger = await world.open();
    world.mood = "refuses";
    await assertOverloaded(() => ledger.usage({ since: 0, until: 1, by: "day" }));
    world.mood = "up";
    assertEquals([ledger.reach().up, await ledger.hold(hold())], [true, { held: true }]);
  }));

Deno.test("JournaledLedger logs a flapping store as one outage, and one below a second not at all", () =>
  inWorld(async (world) => {
    const { clock } = world;
    const ledger = await world.open({ journal: false });
    /** The store fails and is back a few milliseconds later. */
    const flap = async () => {
      world.mood = "refuses";
      await assertOverloaded(() => ledger.hold(hold()));
      world.mood = "up";
      await clock.pass(0);
      await world.until(() => ledger.reach().up);
    };
    for (let times = 0; times < 3; times++) {
      await flap();
      await clock.pass(5_000);
    }
    assertEquals(world.events, []);

    const began = clock.monotonic();
    for (let times = 0; times < 100; times++) {
      await flap();
      await clock.pass(50);
    }
    assertEquals(eventsOf(world), ["store_down"]);
    const back = clock.monotonic();
    await clock.pass(2_000);
    const [down, up] = world.events;
    assertEquals([down?.cause, down?.code, eventsOf(world)], ["Unreachable", "ECONNREFUSED", [
      "store_down",
      "store_up",
    ]]);
    const downMs = Number(up?.down_ms);
    assert(downMs > 4_000 && downMs <= back - began, `${downMs}`);

    world.mood = "refuses";
    await assertOverloaded(() => ledger.hold(hold()));
    await clock.pass(900);
    assertEquals(eventsOf(world), ["store_down", "store_up"]);
    await clock.pass(100);
    assertEquals(eventsOf(world), ["store_down", "store_up", "store_down"]);
  }));

Deno.test("JournaledLedger detects a silent store after 2 seconds, with or without callers", () =>
  inWorld(async (world) => {
    const ledger = await world.open();
    world.mood = "silent";
    const requested = assertOverloaded(() => ledger.hold(hold()));
    await world.clock.pass(1_900);
    assertEquals(ledger.reach().up, true);
    await world.clock.pass(100);
    await requested;
    assertEquals(ledger.reach().up, false);
    world.mood = "up";
    await world.until(() => ledger.reach().up);
    world.mood = "silent";
    await world.clock.pass(3_500);
    assertEquals(ledger.reach().up, false);
  }));

Deno.test("JournaledLedger accepts an answer that arrives during a stall of its process", () =>
  inWorld(async (world) => {
    const answer = Promise.withResolvers<boolean[]>();
    const ledger = await world.open({ ledger: { ...world.far, append: () => answer.promise } });
    const entered = ledger.append([entry()]);
    // The timeout fires first, and the answer arrives in the next turn.
    world.clock.later(() => answer.resolve([true]), 2_000);
    await world.clock.pass(2_000);
    assertEquals([await entered, ledger.reach().up, world.events], [[true], true, []]);
  }));

Deno.test("JournaledLedger does not repeat an entry that was written although its answer was lost", () =>
  inWorld(async (world) => {
    const ledger = await world.open();
    world.mood = "forgets to answer";
    assertEquals(await ledger.append([entry({ id: "a" })]), [true]);
    await ledger.append([entry({ id: "b" })]);
    world.mood = "up";
    await world.until(() => eventsOf(world).includes("journal_replayed"));
    assertEquals(await idsIn(world.far), ["a", "b"]);
    assertEquals(world.events.at(-1), { level: "info", event: "journal_replayed", entries: 2, not_new: 1 });
  }));

Deno.test("JournaledLedger voids no hold before its entries are written and a lease has passed", () =>
  inWorld(async (world) => {
    const { clock } = world;
    const ledger = await world.open({ leaseMs: 60_000 });
    const now = clock.now();
    await ledger.hold(hold({ id: "mine", at: now, leaseUntil: now + 60_000 }));
    await ledger.hold(hold({ id: "dead", at: now, leaseUntil: now + 60_000, amount: 7n }));
    world.mood = "refuses";
    await ledger.append([entry({ id: "mine", cost: 5n })]);
    await clock.pass(120_000);
    world.mood = "up";
    // The first call, before anything was replayed.
    assertEquals(await ledger.expire(clock.now()), []);
    await world.until(() => ledger.reach().waiting === 0);
    await clock.pass(58_000);
    assertEquals(await ledger.expire(clock.now()), []);
    await clock.pass(2_000);
    assertEquals(await ledger.expire(clock.now()), ["dead"]);
    assertEquals((await ledger.find("mine"))?.cost, 5n);
  }));

Deno.test("JournaledLedger without a journal enters nothing during an outage", () =>
  inWorld(async (world) => {
    const ledger = await world.open({ journal: false });
    assertEquals(ledger.isWritable, true);
    world.mood = "refuses";
    for (let count = 0; count < 2; count++) await assertOverloaded(() => ledger.append([entry()]));
    assertEquals(ledger.isWritable, false);
    world.mood = "up";
    await world.until(() => ledger.isWritable);
    assertEquals(await ledger.append([entry()]), [true]);
  }));

Deno.test("JournaledLedger reports rejected entries to their caller, and sets replayed ones aside", () =>
  inWorld(async (world) => {
    const broken = Object.assign(new Error("null value"), { code: "23502" });
    const refuse = (entries: readonly Entry[]) =>
      entries.some(({ id }) => id === "bad") ? Promise.reject(broken) : world.far.append(entries);
    const ledger = await world.open({ ledger: { ...world.far, append: refuse } });
    assertEquals(await assertRejects(() => ledger.append([entry({ id: "bad" })])), broken);
    await assertRejects(() => ledger.append([entry({ cost: -1n })]), RangeError);
    assertEquals(ledger.reach().up, true);
    world.mood = "refuses";
    await ledger.append([entry({ id: "start" })]);
    await ledger.append(["a", "bad", "b"].map((id) => entry({ id })));
    await assertRejects(() => ledger.append([entry({ cost: -1n })]), RangeError);
    world.mood = "up";
    await world.until(() => ledger.reach().waiting === 0);
    assertEquals(await idsIn(world.far), ["start", "a", "b"]);
    assert(world.events.some(({ event, request_id }) => event === "journal_entry_refused" && request_id === "bad"));
    assert((await Deno.readTextFile(`${world.folder}/journal.refused`)).includes('"id":"bad"'));
  }));

Deno.test("JournaledLedger treats a read-only store as down", () =>
  inWorld(async (world) => {
    let isFull = true;
    const append: LedgerStore["append"] = (entries) =>
      isFull ? Promise.reject(new Error("could not extend file: no space left")) : world.far.append(entries);
    const ledger = await world.open({ ledger: { ...world.far, append } });
    await ledger.append([entry({ id: "a" })]);
    await world.clock.pass(30_000);
    await world.until(() => ledger.reach().waiting === 1);
    assertEquals([ledger.reach().up, eventsOf(world)], [false, ["store_down"]]);
    isFull = false;
    await world.until(() => ledger.reach().waiting === 0);
    assertEquals(await idsIn(world.far), ["a"]);
  }));

Deno.test("JournaledLedger ignores answers after their timeout", () =>
  inWorld(async (world) => {
    world.mood = "refuses";
    const before = await world.open();
    await before.append([entry({ id: "a" })]);
    await before.close();
    world.mood = "up";
    let closing: Promise<void> | undefined;
    const append = () => {
      closing = closed.close();
      return Promise.reject(new Unreachable("connection lost"));
    };
    const closed = await world.open({ ledger: { ...world.far, append } });
    await world.until(() => closing !== undefined);
    await closing;
    const after = await world.open();
    await world.until(() => after.reach().waiting === 0);
    assertEquals(await idsIn(world.far), ["a"]);
  }));

/** Plays outages, lost answers and restarts against appends by chance. */
async function simulate(seed: number): Promise<void> {
  const { below } = seeded(seed);
  await inWorld(async (world) => {
    let ledger = await world.open({ maxEntries: 60 });
    const acked: string[] = [];
    let made = 0;
    for (let step = 0; step < 60; step++) {
      const dice = below(12);
      if (dice < 6) {
        const batch = Array.from({ length: 1 + below(4) }, () => entry({ id: `e${made++}`, cost: BigInt(below(100)) }));
        let state = "waits";
        const entered = ledger.append(batch).then(() => state = "acked", () => state = "refused");
        await world.until(() => state !== "waits");
        await entered;
        if (state === "acked") acked.push(...batch.map(({ id }) => id));
      } else if (dice < 9) {
        world.mood = (["up", "up", "refuses", "silent", "forgets to answer"] as const)[below(5)] ?? "up";
      } else if (dice < 11) await world.clock.pass(below(3_000));
      else {
        await ledger.close();
        ledger = await world.open({ maxEntries: 60 });
      }
    }
    world.mood = "up";
    await world.until(() => ledger.reach().up && ledger.reach().waiting === 0);
    const found = await idsIn(world.far);
    assertEquals(new Set(found).size, found.length);
    const missing = acked.filter((id) => !found.includes(id));
    assertEquals(missing, [], `seed ${seed}`);
  });
}

Deno.test("JournaledLedger enters every acknowledged entry once, in random outages and restarts", async () => {
  for (let seed = 1; seed <= rounds(40); seed++) await simulate(seed);
});
