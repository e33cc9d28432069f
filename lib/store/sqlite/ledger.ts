// deno-lint-ignore-file require-await -- calls that throw must reject
/** The ledger in the SQLite file. */
import type { DatabaseSync } from "node:sqlite";
import { runSlicedNow } from "../../scheduler.ts";
import type { Hold, LedgerStart, LedgerStore, Spender, Spending } from "../ledger.ts";
import { dayOf } from "../days.ts";
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

/** The tables of the ledger. */
export interface LedgerRows {
  entries: EntryRows;
  sheets: SheetRows;
  holds: HoldRows;
  sums: SumRows;
  start(): LedgerStart;
}

/** The operations of a ledger that need no ownership. */
export type LedgerReader = Pick<
  LedgerStore,
  "find" | "spenders" | "entries" | "entriesWithin" | "usage" | "search" | "lastSeq" | "days" | "prune" | "start"
>;

/** Reports made in slices. */
export type Reports = Pick<LedgerStore, "usage" | "search">;

/** Opens the rows of a migrated database. */
export function openLedgerRows(db: DatabaseSync): LedgerRows {
  const start = prepareStart(db);
  const sheets = openSheetRows(db);
  return {
    sheets,
    entries: openEntryRows(db, sheets),
    holds: openHoldRows(db),
    sums: openSumRows(db),
    start,
  };
}

function prepareStart(db: DatabaseSync): () => LedgerStart {
  const select = db.prepare("SELECT seq, check_sum, day FROM ledger_start");
  return () => {
    const row = select.get();
    return { seq: Number(row?.seq), check: Number(row?.check_sum), day: Number(row?.day) };
  };
}

/** Opens the operations that any process may use. */
export function openLedgerReader(
  db: DatabaseSync,
  { rows, reports }: { rows: LedgerRows; reports: Reports },
): LedgerReader {
  const { entries, sums, start } = rows;
  const prune = openPruning(db, start);
  return {
    find: async (id) => entries.find(id),
    spenders: async ({ after }) => entries.spenders(after),
    entries: async ({ after, limit }) => entries.after(after, limit),
    entriesWithin: async (span) => entries.within(span),
    usage: reports.usage,
    search: reports.search,
    lastSeq: async () => entries.lastSeq(),
    days: (since, enough = Infinity) => runSlicedNow(sums.days(since, enough)),
    prune,
    start: async () => start(),
  };
}

/** Opens the ledger for a process that does not own it, which cannot enter anything. */
export function openGuestLedger(db: DatabaseSync, reports: Reports): LedgerStore {
  const rows = openLedgerRows(db);

  async function refuse(): Promise<never> {
    throw new Error("Cannot enter anything into the ledger: this process does not own it");
  }

  function spendingOf({ scope, id, since }: Spender, holds: readonly Hold[]): Spending {
    const held = holds
      .filter(({ keyId, group, at }) => (scope === "key" ? keyId : group) === id && dayOf(at) >= since)
      .reduce((sum, { amount }) => sum + amount, 0n);
    return { charged: rows.sums.chargedSince({ scope, id, since }), held };
  }

  return {
    ...openLedgerReader(db, { rows, reports }),
    hold: refuse,
    renew: refuse,
    append: refuse,
    expire: refuse,
    async left(claim) {
      const { charged, held } = spendingOf(claim, rows.holds.all());
      return claim.budget - charged - held;
    },
    async spending(spenders) {
      const holds = rows.holds.all();
      return spenders.map((spender) => spendingOf(spender, holds));
    },
    holds: async () => rows.holds.all(),
  };
}
