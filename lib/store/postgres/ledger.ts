// deno-lint-ignore-file require-await -- calls that throw must reject
/** The ledger in a Postgres database, which several nodes write at once. */
import { lostEntry } from "../sqlite/accounts.ts";
import { assertEntry } from "../entry_row.ts";
import type { Entry, LedgerStore } from "../ledger.ts";
import type { Sql } from "./client.ts";
import { createServerClock } from "./ledger_clock.ts";
import { openHolding } from "./ledger_holds.ts";
import { retryConflicts } from "./ledger_retry.ts";
import {
  findEntry,
  readDurations,
  readEntries,
  readEntriesWithin,
  readHolds,
  readOverdue,
  readSpenders,
} from "./ledger_rows.ts";
import { searchEntries } from "./ledger_search.ts";
import { readDays, readLeft, readSpending } from "./ledger_sums.ts";
import { assertEntryTexts, assertInstant, isKept } from "./ledger_texts.ts";
import { ChainWriter } from "./ledger_writer.ts";
import { readSumsOfStep, readUpstreamDays, readUsage } from "./usage.ts";
import { pruneSums, pruneUserSums, readTopUsers, readUserSums } from "./user_sums.ts";

/** Holds voided by one statement. */
const VOIDED_AT_ONCE = 256;

/** Entries pruned by one call. */
const PRUNED_AT_ONCE = 500;

/** Grace period for holds made before the server's last start, in milliseconds. */
const GRACE_MS = 60_000;

/** Options of a ledger. */
export interface PostgresLedgerOptions {
  /** Unix time in milliseconds. */
  now?: () => number;
  /** Monotonic time in milliseconds. */
  monotonic?: () => number;
  /**
   * Time after a restart of the server in which older holds are not voided, in milliseconds: their nodes could not
   * renew them, and their entries may still arrive.
   */
  graceMs?: number;
}

/**
 * Opens the ledger of a migrated database. Leases use the server's clock. Times passed in use this node's clock as set
 * at the start, so that changing the wall clock ends no lease. If the server is unreachable, calls reject with the
 * driver's error.
 */
export function openPostgresLedger(
  sql: Sql,
  { now = Date.now, monotonic = () => performance.now(), graceMs = GRACE_MS }: PostgresLedgerOptions = {},
): LedgerStore {
  const offset = now() - monotonic();
  const steady = () => Math.floor(offset + monotonic());
  const clock = createServerClock(sql, { now: steady, monotonic });
  const writer = new ChainWriter(sql);
  const runInTurn = createTurns();
  const hold = openHolding(sql, clock);

  async function toServer(time: number): Promise<bigint> {
    return BigInt(time) + await clock.offset();
  }

  async function enter(entries: readonly Entry[]): Promise<boolean[]> {
    const isNew = await writer.enter(entries);
    if (isNew === undefined) throw new Error("Cannot enter anything into the ledger: the database checked leases");
    return isNew;
  }

  async function expire(time: number): Promise<string[]> {
    const ids: string[] = [];
    const until = await toServer(time);
    for (;;) {
      const overdue = await readOverdue(sql, { until, limit: VOIDED_AT_ONCE, graceMs });
      if (overdue.length === 0) return ids;
      const lost = overdue.map((each) => lostEntry(each, time));
      const isNew = await writer.enter(lost, until);
      // If one of them was renewed or ended meanwhile, the next round reads them all again.
      if (isNew !== undefined) ids.push(...overdue.filter((_, index) => isNew[index]).map(({ id }) => id));
    }
  }

  return {
    clock: steady,
    hold,
    readAvailable: (claim) => readLeft(sql, claim),
    spending: (spenders) => readSpending(sql, spenders),
    async renew(ids, leaseUntil) {
      assertInstant("renew holds", leaseUntil);
      if (ids.length > 0) await renew(sql, ids, await toServer(leaseUntil));
    },
    async append(newEntries) {
      if (newEntries.length === 0) return [];
      for (const entry of newEntries) {
        assertEntry(entry);
        assertEntryTexts(entry);
      }
      // Copied, because they may wait for earlier calls.
      const entries = newEntries.map((entry) => ({ ...entry, tokens: { ...entry.tokens } }));
      return runInTurn(() => enter(entries));
    },
    async expire(time) {
      assertInstant("void holds", time);
      return runInTurn(() => expire(time));
    },
    async holds() {
      const [open, clockOffset] = await Promise.all([readHolds(sql), clock.offset()]);
      // Difference between the wall clock, which readers compare with, and this clock, in whole milliseconds.
      const wasSet = Math.trunc(now() - offset - monotonic());
      return open.map((each) => ({ ...each, leaseUntil: each.leaseUntil - Number(clockOffset) + wasSet }));
    },
    find: async (id) => isKept(id) ? await findEntry(sql, id) : undefined,
    spenders: (from) => readSpenders(sql, from),
    entries: (from) => readEntries(sql, from),
    entriesWithin: (span) => readEntriesWithin(sql, span),
    durations: (spans) => readDurations(sql, spans),
    // One statement that runs to its end: cancelling by connection could hit the next statement on it.
    usage: (query) => readUsage(sql, query),
    upstreamDays: (query) => readUpstreamDays(sql, query),
    async sumsHead() {
      const [row] = await sql<Record<"seq" | "first_day" | "first_hour", bigint>[]>`
        SELECT seq, first_day, first_hour FROM sums_head`;
      return { seq: Number(row?.seq), firstDay: Number(row?.first_day), firstHour: Number(row?.first_hour) };
    },
    sumsOfStep: (kind, after) => readSumsOfStep(sql, kind, after),
    async sumUp() {
      const [row] = await retryConflicts(() => sql<{ more: boolean }[]>`SELECT ledger_sum_up() AS more`);
      return row?.more === true;
    },
    search: (search) => searchEntries(sql, search),
    topUsers: (of) => readTopUsers(sql, of),
    userSums: (from) => readUserSums(sql, from),
    async lastSeq() {
      const [head] = await sql<{ seq: bigint }[]>`SELECT seq FROM ledger_head`;
      return Number(head?.seq ?? 0);
    },
    days: (since, enough = Infinity) => readDays(sql, since, enough),
    async prune(beforeDay) {
      const [row] = await retryConflicts(() =>
        sql<{ gone: bigint }[]>`SELECT ledger_prune(${beforeDay}, ${PRUNED_AT_ONCE}) AS gone`
      );
      const isMore = [await pruneUserSums(sql, beforeDay), await pruneSums(sql)].includes(true);
      return isMore || Number(row?.gone) === PRUNED_AT_ONCE;
    },
    start: () => readStart(sql),
  };
}

async function readStart(sql: Sql): ReturnType<LedgerStore["start"]> {
  const [row] = await sql<Record<"seq" | "check_sum" | "day", bigint>[]>`SELECT * FROM ledger_start`;
  if (row === undefined) throw new Error("Cannot read the ledger: it has no start");
  return { seq: Number(row.seq), check: Number(row.check_sum), day: Number(row.day) };
}

/** Extends the leases of open holds. */
async function renew(sql: Sql, ids: readonly string[], until: bigint): Promise<void> {
  await retryConflicts(() =>
    sql`
      UPDATE holds SET lease_until = greatest(lease_until, ${until}), alive_at = ledger_clock()
      FROM (
        SELECT id FROM holds
        WHERE id = ANY (ARRAY(SELECT json_array_elements_text(${JSON.stringify(ids)}::text::json)))
        ORDER BY nr FOR UPDATE
      ) mine
      WHERE holds.id = mine.id`
  );
}

/** Runs calls one after the other, in order. */
function createTurns(): <Result>(run: () => Promise<Result>) => Promise<Result> {
  let last: Promise<unknown> = Promise.resolve();
  return (run) => {
    const turn = last.then(run);
    last = turn.catch(() => {});
    return turn;
  };
}
