/** Prunes old entries and sums of a SQLite database, and returns their space to the file system. */
import type { DatabaseSync } from "node:sqlite";
import { DAY_MS, dayOf } from "../days.ts";
import type { LedgerStart } from "../ledger.ts";
import { readNumber } from "./pragma.ts";
import { atomically, whenFree } from "./transaction.ts";
import type { Summing } from "./sums.ts";
import type { UserSumRows } from "./user_sums.ts";

/** Maximum number of entries that a call prunes, and of pages that it frees: a few milliseconds of work. */
const ENTRIES_PER_CALL = 500;
const PAGES_PER_CALL = 100;

/** Free pages that stay in the file for later writes. */
const SPARE_PAGES = 256;

/** Value of `PRAGMA auto_vacuum` for a file from which single pages can be removed. */
const INCREMENTAL = 2;

/** The columns of an entry that pruning reads. */
interface OldRow {
  seq: number;
  at: number;
  check_sum: number;
}

/** Prepares `LedgerStore.prune`. */
export function openPruning(
  db: DatabaseSync,
  { start, users, summing }: {
    start: () => LedgerStart;
    users: Pick<UserSumRows, "prune">;
    summing: () => Pick<Summing, "sumUpTo" | "prune">;
  },
): (beforeDay: number, today: number) => Promise<boolean> {
  const oldest = db.prepare("SELECT seq, at, check_sum FROM entries WHERE seq > ? ORDER BY seq LIMIT ?");
  // One of these entries is later than the ones above, if there is any such entry.
  const lastOld = db.prepare(
    `SELECT max(seq) AS seq FROM (SELECT seq FROM entries WHERE at < ? ORDER BY at LIMIT ${ENTRIES_PER_CALL + 1})`,
  );
  const moveStart = db.prepare("UPDATE ledger_start SET seq = ?, check_sum = ?, day = ?, ahead = ?");
  const remove = db.prepare("DELETE FROM entries WHERE seq <= ?");

  /** Prunes entries and returns their number. Stops at the first entry to keep, since the ledger must have no gaps. */
  function pruneEntries(beforeDay: number, today: number): number {
    const { seq, day, ahead = [] } = start();
    const rows = oldest.all(seq, ENTRIES_PER_CALL) as unknown as OldRow[];
    const lastOldSeq = Number(lastOld.get(beforeDay * DAY_MS)?.seq);
    const isOld = (row: OldRow) => row.at < beforeDay * DAY_MS || (dayOf(row.at) > today && row.seq < lastOldSeq);
    const firstToKeep = rows.findIndex((row) => !isOld(row));
    const old = firstToKeep === -1 ? rows : rows.slice(0, firstToKeep);
    const last = old.at(-1);
    if (last === undefined) return 0;
    summing().sumUpTo(last.seq);
    const days = new Set([...ahead, ...old.map(({ at }) => dayOf(at))]);
    const lastDay = Math.max(day, ...[...days].filter((one) => one < beforeDay));
    const daysAhead = [...days].filter((one) => one > lastDay);
    moveStart.run(last.seq, last.check_sum, lastDay, JSON.stringify(daysAhead));
    remove.run(last.seq);
    return old.length;
  }

  return async (beforeDay, today) => {
    // The first call prepares temporary tables, which must not happen within a transaction.
    const sums = summing();
    const pruned = await whenFree(() => atomically(db, () => pruneEntries(beforeDay, today)));
    const isMore = await whenFree(() => users.prune(beforeDay));
    const hasSums = await whenFree(() => atomically(db, () => sums.prune(start())));
    return isMore || hasSums || pruned === ENTRIES_PER_CALL || await whenFree(() => truncateFreePages(db));
  };
}

/** Removes free pages from the file. Returns true if more remain. */
function truncateFreePages(db: DatabaseSync): boolean {
  if (readNumber(db, "auto_vacuum") !== INCREMENTAL) return false;
  const free = readNumber(db, "freelist_count");
  if (free <= SPARE_PAGES) return false;
  // Each row that is read removes one page.
  db.prepare(`PRAGMA incremental_vacuum(${Math.min(PAGES_PER_CALL, free - SPARE_PAGES)})`).all();
  return free - PAGES_PER_CALL > SPARE_PAGES;
}
