import { assertEquals } from "@std/assert";
import { startPruning } from "../../lib/cli/maintenance.ts";
import { parseConfig } from "../../lib/config/parse.ts";
import type { LogEntry } from "../../lib/log_events.ts";
import { openMemoryStore } from "../../lib/store/sqlite/memory.ts";
import { DAY_MS, DAY_ONE, entryOf, someEntries } from "../billing/reports/entries.ts";

/**
 * Prunes at a moment, keeping 10 days, until nothing is left to do.
 * @param options `newest`: arrival of the newest entry, by default that moment
 */
async function pruneAt(
  now: number,
  { newest = now, prune }: { newest?: number; prune?: () => Promise<boolean> } = {},
): Promise<{ first: number; logs: LogEntry[] }> {
  const store = openMemoryStore();
  await store.ledger.append(someEntries(2000).sort((a, b) => a.at - b.at));
  await store.ledger.append([entryOf({ id: "newest", at: newest })]);
  const logs: LogEntry[] = [];
  const { promise: over, resolve: end } = Promise.withResolvers<void>();
  const ledger = {
    ...store.ledger,
    async prune(beforeDay: number) {
      const isMore = await (prune?.() ?? store.ledger.prune(beforeDay, Infinity));
      if (!isMore) end();
      return isMore;
    },
  };
  const stop = startPruning(() => ({
    config: parseConfig({ ledger: { keep_days: 10 } }),
    store: { ...store, ledger },
    now: () => now,
    log(entry) {
      logs.push(entry);
      end();
    },
  }), { firstMs: 0 });
  await over;
  stop();
  const [first] = await ledger.entries({ after: 0, limit: 1 });
  return { first: first === undefined ? 0 : first.at, logs };
}

Deno.test("the serving process prunes only entries older than the retention", async () => {
  const eleventh = DAY_ONE + 10 * DAY_MS;
  assertEquals((await pruneAt(eleventh + DAY_MS - 1)).first < DAY_ONE + DAY_MS, true);
  const { first, logs } = await pruneAt(eleventh + DAY_MS);
  assertEquals([first >= DAY_ONE + DAY_MS, first < DAY_ONE + 2 * DAY_MS, logs], [true, true, []]);
  const last = eleventh + 3 * DAY_MS;
  assertEquals((await pruneAt(last)).first, last);
});

Deno.test("a start with a clock that is ahead deletes only what the newest entry lets expire", async () => {
  const { first } = await pruneAt(DAY_ONE + 365 * DAY_MS, { newest: DAY_ONE + 11 * DAY_MS });
  assertEquals([first >= DAY_ONE + DAY_MS, first < DAY_ONE + 2 * DAY_MS], [true, true]);
});

Deno.test("a failing prune is logged and does not end the process", async () => {
  const { logs } = await pruneAt(DAY_ONE, { prune: () => Promise.reject(new Error("disk")) });
  assertEquals(logs.map(({ level, event }) => [level, event]), [["warn", "prune_failed"]]);
});

Deno.test("a clock that jumps ahead deletes nothing: each round moves on by two hours at most", async () => {
  const store = openMemoryStore();
  const config = parseConfig({ ledger: { keep_days: 10 } });
  const begin = DAY_ONE + 20 * DAY_MS;
  let now = begin;
  const days: number[] = [];
  const { promise: over, resolve: end } = Promise.withResolvers<void>();
  const ledger = {
    ...store.ledger,
    prune(beforeDay: number) {
      days.push(beforeDay);
      now = days.length === 1 ? begin + 365 * DAY_MS : begin - DAY_MS;
      if (days.length === 3) end();
      return Promise.resolve(false);
    },
  };
  const parts = { config, store: { ...store, ledger }, now: () => now, log: () => {} };
  const stop = startPruning(() => parts, { firstMs: 0, everyMs: 1 });
  await over;
  stop();
  const first = begin / DAY_MS - 10;
  assertEquals(days.slice(0, 3), [first, first, first - 1]);
});

Deno.test("pruning catches up with a clock that stays ahead, in steps that double", async () => {
  const store = openMemoryStore();
  const begin = DAY_ONE + 20 * DAY_MS;
  await store.ledger.append([entryOf({ id: "newest", at: begin })]);
  let rounds = 0;
  const { promise: over, resolve: end } = Promise.withResolvers<void>();
  const ledger = {
    ...store.ledger,
    prune(beforeDay: number) {
      rounds++;
      if (beforeDay === begin / DAY_MS + 365 - 10) end();
      return Promise.resolve(false);
    },
  };
  const config = parseConfig({ ledger: { keep_days: 10 } });
  const parts = { config, store: { ...store, ledger }, now: () => begin + 365 * DAY_MS, log: () => {} };
  const stop = startPruning(() => parts, { firstMs: 0, everyMs: 1 });
  await over;
  stop();
  // 2 + 4 + 8 + … milliseconds.
  assertEquals(rounds, Math.ceil(Math.log2(365 * DAY_MS / 2 + 1)));
});
