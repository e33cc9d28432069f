// deno-lint-ignore-file require-await -- calls that throw must reject
/** The ledger in a SQLite database: what any process may read and prune, and the ledger of one that does not own it. */
import type { DatabaseSync } from "node:sqlite";
import { runSlicedNow } from "../../scheduler.ts";
import type { Hold, LedgerStart, LedgerStore, Spender, Spending } from "../ledger.ts";
import { countsAgainst } from "../hold_row.ts";
import { openPruning } from "./prune.ts";
import {
  type EntryRows,
  type HoldRows,
  openEntryRows,
  openHoldRows,
  openSheetRows,
  type SheetRows,
} from "./ledger_rows.ts";
import { openSumRows, type SumRows } from "./day_sums.ts";
import { endOfBlock, openSumming, prepareSumsHead, prepareSumsOfStep, type Summing } from "./sums.ts";
import { atomically, whenFree } from "./transaction.ts";
import { openUserSumRows, type UserSumRows } from "./user_sums.ts";

/** The tables of the ledger. */
export interface LedgerRows {
  entries: EntryRows;
  sheets: SheetRows;
  holds: HoldRows;
  sums: SumRows;
  users: UserSumRows;
  start(): LedgerStart;
}

/** The calls of a ledger that any process may make, whether it owns the ledger or not. */
export type LedgerReader = Omit<
  LedgerStore,
  "hold" | "spending" | "renew" | "release" | "append" | "expire" | "holds"
>;

/** The calls of a ledger that read much, and pause meanwhile. */
export type Reports = Pick<LedgerStore, "durations" | "usage" | "upstreamDays" | "search" | "topUsers">;

/** Opens the tables of a migrated database. */
export function openLedgerRows(db: DatabaseSync): LedgerRows {
  const start = db.prepare("SELECT seq, check_sum, day, ahead FROM ledger_start");
  const sheets = openSheetRows(db);
  return {
    sheets,
    entries: openEntryRows(db, sheets),
    holds: openHoldRows(db),
    sums: openSumRows(db),
    users: openUserSumRows(db),
    start() {
      const row = start.get();
      const ahead: number[] = JSON.parse(String(row?.ahead));
      return {
        seq: Number(row?.seq),
        check: Number(row?.check_sum),
        day: Number(row?.day),
        ...(ahead.length > 0 && { ahead }),
      };
    },
  };
}

/** Opens the calls that any process may make. */
export function openLedgerReader(
  db: DatabaseSync,
  { rows, reports }: { rows: LedgerRows; reports: Reports },
): LedgerReader {
  const { entries, sums, users, start } = rows;
  const head = prepareSumsHead(db);
  const sumsOfStep = prepareSumsOfStep(db);
  let opened: Summing | undefined;
  // Opened at the first use: processes that only read never need it.
  const summing = () => opened ??= openSumming(db, rows.sheets);
  const prune = openPruning(db, { start, users, summing });
  return {
    find: async (id) => entries.find(id),
    spenders: async (after) => entries.spenders(after),
    entries: async ({ after, limit }) => entries.after(after, limit),
    entriesWithin: async (span) => entries.within(span),
    durations: reports.durations,
    usage: reports.usage,
    upstreamDays: reports.upstreamDays,
    sumsHead: async () => head(),
    sumsOfStep: (kind, after) => runSlicedNow(sumsOfStep(kind, after)),
    async sumUp() {
      const last = entries.lastSeq();
      if (last < endOfBlock(head().seq)) return false;
      // The first call prepares temporary tables, which must not happen within a transaction.
      summing();
      return await whenFree(() => atomically(db, () => summing().sumUp(last)));
    },
    search: reports.search,
    topUsers: reports.topUsers,
    userSums: async (from) => users.after(from),
    lastSeq: async () => entries.lastSeq(),
    days: (since, enough = Infinity) => runSlicedNow(sums.days(since, enough)),
    prune,
    start: async () => start(),
  };
}

/** Returns the amount that a key, group or end user was charged since a day. */
export function readCharged({ sums, users }: Pick<LedgerRows, "sums" | "users">, spender: Spender): bigint {
  const { scope, id, since } = spender;
  return scope === "user" ? users.charged(spender) : sums.chargedSince({ scope, id, since });
}

/** Opens the ledger for a process that does not own it. Such a process can neither make holds nor write entries. */
export function openGuestLedger(db: DatabaseSync, reports: Reports): LedgerStore {
  const rows = openLedgerRows(db);

  async function refuse(): Promise<never> {
    throw new Error("Cannot enter anything into the ledger: this process does not own it");
  }

  function spendingOf(spender: Spender, holds: readonly Hold[]): Spending {
    const held = holds
      .filter((hold) => countsAgainst(hold, spender))
      .reduce((sum, { amount }) => sum + amount, 0n);
    return { charged: readCharged(rows, spender), held };
  }

  return {
    ...openLedgerReader(db, { rows, reports }),
    hold: refuse,
    renew: refuse,
    release: refuse,
    append: refuse,
    expire: refuse,
    async spending(spenders) {
      const holds = rows.holds.all();
      return spenders.map((spender) => spendingOf(spender, holds));
    },
    holds: async () => rows.holds.all(),
  };
}
