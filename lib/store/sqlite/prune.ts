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
): (beforeDay: number) => Promise<boolean> {
  const oldest = db.prepare("SELECT seq, at, check_sum FROM entries WHERE seq > ? ORDER BY seq LIMIT ?");
  const moveStart = db.prepare("UPDATE ledger_start SET seq = ?, check_sum = ?, day = ?");
  const remove = db.prepare("DELETE FROM entries WHERE seq <= ?");

  /** Prunes entries and returns their number. Stops at the first entry to keep, since the ledger must have no gaps. */
  function pruneEntries(beforeDay: number): number {
    const { seq, day } = start();
    const rows = oldest.all(seq, ENTRIES_PER_CALL) as unknown as OldRow[];
    const firstToKeep = rows.findIndex(({ at }) => at >= beforeDay * DAY_MS);
    const old = firstToKeep === -1 ? rows : rows.slice(0, firstToKeep);
    const last = old.at(-1);
    if (last === undefined) return 0;
    summing().sumUpTo(last.seq);
    moveStart.run(last.seq, last.check_sum, Math.max(day, ...old.map(({ at }) => dayOf(at))));
    remove.run(last.seq);
    return old.length;
  }

  return async (beforeDay) => {
    // The first call prepares temporary tables, which must not happen within a transaction.
    const sums = summing();
    const pruned = await whenFree(() => atomically(db, () => pruneEntries(beforeDay)));
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
