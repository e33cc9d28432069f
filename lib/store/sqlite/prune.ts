/** Prunes old entries of the SQLite file and frees their space. */
import type { DatabaseSync } from "node:sqlite";
import { DAY_MS, dayOf } from "../days.ts";
import type { LedgerStart } from "../ledger.ts";
import { readNumber } from "./pragma.ts";
import { atomically, whenFree } from "./transaction.ts";
import type { Summing } from "./sums.ts";
import type { UserSumRows } from "./user_sums.ts";

/** Entries pruned and pages freed per call: a few milliseconds of work. */
const ENTRIES_AT_ONCE = 500;
const PAGES_AT_ONCE = 100;

/** Free pages left in the file for later writes. */
const SPARE_PAGES = 256;

/** `PRAGMA auto_vacuum` value of a file that can free single pages. */
const INCREMENTAL = 2;

/** The columns that pruning reads. */
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

  /** Returns the number of pruned entries. Stops at the first entry to keep, since the ledger has no gaps. */
  function forget(beforeDay: number): number {
    const { seq, day } = start();
    const rows = oldest.all(seq, ENTRIES_AT_ONCE) as unknown as OldRow[];
    const firstKept = rows.findIndex(({ at }) => at >= beforeDay * DAY_MS);
    const old = firstKept === -1 ? rows : rows.slice(0, firstKept);
    const last = old.at(-1);
    if (last === undefined) return 0;
    summing().sumUpTo(last.seq);
    moveStart.run(last.seq, last.check_sum, Math.max(day, ...old.map(({ at }) => dayOf(at))));
    remove.run(last.seq);
    return old.length;
  }

  return async (beforeDay) => {
    // Outside of a transaction: it prepares a temporary table.
    const sums = summing();
    const removed = await whenFree(() => atomically(db, () => forget(beforeDay)));
    const isMore = await whenFree(() => users.prune(beforeDay));
    const hasSums = await whenFree(() => atomically(db, () => sums.prune(start())));
    return isMore || hasSums || removed === ENTRIES_AT_ONCE || await whenFree(() => giveBack(db));
  };
}

/** Truncates free pages. Returns true if more remain. */
function giveBack(db: DatabaseSync): boolean {
  if (readNumber(db, "auto_vacuum") !== INCREMENTAL) return false;
  const free = readNumber(db, "freelist_count");
  if (free <= SPARE_PAGES) return false;
  // Each step frees one page, so all rows must be read.
  db.prepare(`PRAGMA incremental_vacuum(${Math.min(PAGES_AT_ONCE, free - SPARE_PAGES)})`).all();
  return free - PAGES_AT_ONCE > SPARE_PAGES;
}
