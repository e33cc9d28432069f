/** Checks the integrity of a SQLite file: quickly before a gateway starts, or completely. */
import { resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { messageOf } from "../../errors.ts";
import { checkSum } from "../entry_row.ts";
import { readNumber } from "./pragma.ts";
import { openLedgerRows } from "./ledger.ts";

/** Size up to which the structure of a file is checked completely, in bytes: a fraction of a second of work. */
const MAX_FULLY_CHECKED_BYTES = 64 * 1024 * 1024;

/** Tables that stay small. In a larger file only these are checked. */
const SMALL_TABLES = ["keys", "price_sheets", "holds", "ledger_start"];

/** Number of last entries whose chain is checked: those that a crash is most likely to damage. */
const CHECKED_ENTRIES = 200;

/** Checks the structure of a small database, or of the small tables of a large one. @throws {Error} if it is damaged */
export function checkStructure(db: DatabaseSync): void {
  const bytes = readNumber(db, "page_count") * readNumber(db, "page_size");
  if (bytes <= MAX_FULLY_CHECKED_BYTES) return requireOk(db, "quick_check");
  const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all().map(({ name }) => name);
  for (const table of SMALL_TABLES) {
    if (tables.includes(table)) requireOk(db, `quick_check(${table})`);
  }
}

/** Checks the whole database with its indexes, whatever its size. @throws {Error} if it is damaged */
export function checkAll(db: DatabaseSync): void {
  requireOk(db, "integrity_check(1)");
}

function requireOk(db: DatabaseSync, check: string): void {
  const verdict = Object.values(db.prepare(`PRAGMA ${check}`).get() ?? {})[0];
  if (verdict !== "ok") throw new Error(`the file is damaged (${String(verdict)})`);
}

/** Checks the chain of the last entries of a migrated database. @throws {Error} if it is broken */
export function checkLastEntries(db: DatabaseSync): void {
  const { entries, start } = openLedgerRows(db);
  const last = entries.last(CHECKED_ENTRIES);
  const first = last[0];
  const begin = start();
  if (first === undefined) return;
  // The first of these entries cannot be compared with its predecessor, unless it is the first one in the ledger.
  let previous = first.seq === begin.seq + 1 ? begin : undefined;
  for (const entry of last) {
    const fits = previous === undefined ||
      (entry.seq === previous.seq + 1 && entry.check === checkSum(entry, previous.check));
    if (!fits) throw new Error(`the file is damaged (the checksum of entry ${entry.seq} of the ledger does not fit)`);
    previous = { ...begin, seq: entry.seq, check: entry.check };
  }
}

/** Maximum number of problems that are reported. */
const MAX_PROBLEMS = 20;

/**
 * Lists the damage in the structure of a SQLite store and its indexes; the list is empty if the store is intact. Reads
 * the whole file and blocks the process: about a second per million entries.
 */
export function findDamage(path: string): string[] {
  try {
    // Resolved, so that no path is one of SQLite's special names, such as ":memory:".
    const db = new DatabaseSync(resolve(path), { readOnly: true });
    try {
      const rows = db.prepare(`PRAGMA integrity_check(${MAX_PROBLEMS})`).all();
      return rows.map((row) => String(Object.values(row)[0])).filter((verdict) => verdict !== "ok");
    } finally {
      db.close();
    }
  } catch (error) {
    return [messageOf(error)];
  }
}
