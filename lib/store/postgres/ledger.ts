// deno-lint-ignore-file require-await -- calls that throw must reject
/** The ledger in a Postgres database, to which several nodes write concurrently. */
import { createSerializer } from "../../scheduler.ts";
import { lostEntry } from "../sqlite/accounts.ts";
import { assertEntry } from "../entry_row.ts";
import type { Entry, LedgerStore } from "../ledger.ts";
import type { Sql } from "./client.ts";
import { measureClock } from "./ledger_clock.ts";
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
import { readDays, readSpending } from "./ledger_sums.ts";
import { assertEntryTexts, assertInstant, isStorableText, textArray } from "./ledger_texts.ts";
import { ChainWriter } from "./ledger_writer.ts";
import { readSumsOfStep, readUpstreamDays, readUsage } from "./usage.ts";
import { pruneSums, pruneUserSums, readTopUsers, readUserSums } from "./user_sums.ts";

/** Maximum number of holds that one call voids: entries wait for it. */
const VOIDED_PER_CALL = 256;

/** Maximum number of entries that one call prunes. */
const PRUNED_PER_CALL = 500;

/** Default of `PostgresLedgerOptions.graceMs`. */
const GRACE_MS = 60_000;

/** Options of a ledger. */
export interface PostgresLedgerOptions {
  /** Connections for reports, which may take seconds: holds and entries must not wait for them. Absent: the same. */
  reports?: Sql;
  /** Unix time in milliseconds; absent: `Date.now`. */
  now?: () => number;
  /** Monotonic time in milliseconds; absent: `performance.now`. */
  monotonic?: () => number;
  /**
   * Time after a start of the server in which older holds are not voided, in milliseconds: their nodes could not renew
   * them, and their entries may still arrive. Absent: a minute.
   */
  graceMs?: number;
  /** Called when the database turns out to have lost entries that it had confirmed. */
  rolledBack?: () => void;
}

/**
 * Opens the ledger of a migrated database. Leases use the server's clock. Times of callers are by the ledger's `clock`,
 * which is this node's clock as it was set at the start, so that a change of the wall clock ends no lease. If the
 * server is unreachable, calls reject with the driver's error.
 */
export function openPostgresLedger(
  sql: Sql,
  { reports = sql, now = Date.now, monotonic = () => performance.now(), graceMs = GRACE_MS, rolledBack = () => {} }:
    PostgresLedgerOptions = {},
): LedgerStore {
  const offset = now() - monotonic();
  const steadyNow = () => Math.floor(offset + monotonic());
  const serverAhead = measureClock(sql, { now: steadyNow, monotonic });
  const writer = new ChainWriter(sql, rolledBack);
  const runInOrder = createSerializer();
  const hold = openHolding(sql, serverAhead);

  /** Converts a time of this node to the server's clock. */
  async function toServer(time: number): Promise<bigint> {
    return BigInt(time) + await serverAhead();
  }

  async function enter(entries: readonly Entry[]): Promise<boolean[]> {
    const isNew = await writer.enter(entries);
    if (isNew === undefined) throw new Error("Cannot enter anything into the ledger: the database checked leases");
    return isNew;
  }

  async function expire(time: number): Promise<string[]> {
    const until = await toServer(time);
    for (;;) {
      const overdue = await readOverdue(sql, { until, limit: VOIDED_PER_CALL, graceMs });
      if (overdue.length === 0) return [];
      const isNew = await writer.enter(overdue.map((hold) => lostEntry(hold, time)), until);
      // If one of these holds was renewed or has ended since the read, none is voided, and the next round reads all
      // again.
      if (isNew !== undefined) return overdue.filter((_, index) => isNew[index]).map(({ id }) => id);
    }
  }

  return {
    clock: steadyNow,
    hold,
    spending: (spenders) => readSpending(sql, spenders),
    async renew(ids, leaseUntil) {
      assertInstant("renew holds", leaseUntil);
      if (ids.length > 0) await renew(sql, ids, await toServer(leaseUntil));
    },
    release: (ids) => release(sql, ids),
    async append(newEntries) {
      if (newEntries.length === 0) return await testRoom(sql);
      for (const entry of newEntries) {
        assertEntry(entry);
        assertEntryTexts(entry);
      }
      // Copied, because they may have to wait for earlier calls.
      const entries = newEntries.map((entry) => ({ ...entry, tokens: { ...entry.tokens } }));
      return runInOrder(() => enter(entries));
    },
    async expire(time) {
      assertInstant("void holds", time);
      return runInOrder(() => expire(time));
    },
    async holds() {
      const [open, ahead] = await Promise.all([readHolds(reports), serverAhead()]);
      // Readers compare with the wall clock, which may have been set since the start, by this many milliseconds.
      const clockChange = Math.trunc(now() - offset - monotonic());
      return open.map((hold) => ({ ...hold, leaseUntil: hold.leaseUntil - Number(ahead) + clockChange }));
    },
    find: async (id) => isStorableText(id) ? await findEntry(sql, id) : undefined,
    spenders: (after) => readSpenders(reports, after),
    entries: (from) => readEntries(reports, from),
    entriesWithin: (span) => readEntriesWithin(reports, span),
    durations: (spans) => readDurations(reports, spans),
    // The signal is ignored: the driver cancels by connection, which could hit the next statement on it.
    usage: (query) => readUsage(reports, query),
    upstreamDays: (query) => readUpstreamDays(reports, query),
    async sumsHead() {
      const [row] = await sql<Record<"seq" | "first_day" | "first_hour", bigint>[]>`
        SELECT seq, first_day, first_hour FROM sums_head`;
      return { seq: Number(row?.seq), firstDay: Number(row?.first_day), firstHour: Number(row?.first_hour) };
    },
    sumsOfStep: (kind, after) => readSumsOfStep(reports, kind, after),
    async sumUp() {
      const [row] = await retryConflicts(() => reports<{ more: boolean }[]>`SELECT ledger_sum_up() AS more`);
      return row?.more === true;
    },
    search: (search) => searchEntries(reports, search),
    topUsers: (of) => readTopUsers(reports, of),
    userSums: (from) => readUserSums(reports, from),
    async lastSeq() {
      const [head] = await sql<{ seq: bigint }[]>`SELECT seq FROM ledger_head`;
      return Number(head?.seq ?? 0);
    },
    days: (since, enough = Infinity) => readDays(reports, since, enough),
    async prune(beforeDay, today) {
      const lastDay = Math.min(today, Number.MAX_SAFE_INTEGER);
      const [row] = await retryConflicts(() =>
        reports<{ gone: bigint }[]>`SELECT ledger_prune(${beforeDay}, ${lastDay}, ${PRUNED_PER_CALL}) AS gone`
      );
      const isMore = [await pruneUserSums(reports, beforeDay), await pruneSums(reports)].includes(true);
      return isMore || Number(row?.gone) === PRUNED_PER_CALL;
    },
    start: () => readStart(sql),
  };
}

/** Writes 2,000 rows, which need new pages, and deletes them. @throws the driver's error if the server cannot be written */
async function testRoom(sql: Sql): Promise<[]> {
  // Both statements are one message, so a node that stalls leaves no lock behind, and no transaction ever sees the rows.
  await sql.unsafe(`
    INSERT INTO user_sums (since, key_id, end_user, cost)
      SELECT -1, 'test ' || txid_current(), to_char(number, repeat('0', 100)), 0 FROM generate_series(1, 2000) number;
    DELETE FROM user_sums WHERE since = -1`);
  return [];
}

async function readStart(sql: Sql): ReturnType<LedgerStore["start"]> {
  const [row] = await sql<(Record<"seq" | "check_sum" | "day", bigint> & { ahead: string })[]>`
    SELECT seq, check_sum, day, array_to_json(ahead)::text AS ahead FROM ledger_start`;
  if (row === undefined) throw new Error("Cannot read the ledger: it has no start");
  const ahead: number[] = JSON.parse(row.ahead);
  return {
    seq: Number(row.seq),
    check: Number(row.check_sum),
    day: Number(row.day),
    ...(ahead.length > 0 && { ahead }),
  };
}

/** Extends the leases of open holds. */
async function renew(sql: Sql, ids: readonly string[], until: bigint): Promise<void> {
  await retryConflicts(() =>
    sql`
      UPDATE holds SET lease_until = greatest(lease_until, ${until}), alive_at = ledger_clock()
      FROM ${lockedHolds(sql, ids)} mine WHERE holds.id = mine.id`
  );
}

/** Ends holds without entries. */
async function release(sql: Sql, ids: readonly string[]): Promise<void> {
  await retryConflicts(() => sql`DELETE FROM holds USING ${lockedHolds(sql, ids)} mine WHERE holds.id = mine.id`);
}

/** Returns a subquery that locks open holds in their order, so that transactions cannot deadlock. */
function lockedHolds(sql: Sql, ids: readonly string[]): ReturnType<Sql> {
  return sql`(SELECT id FROM holds WHERE id = ANY (${textArray(sql, ids)}) ORDER BY nr FOR UPDATE)`;
}
