/** Integrity checks of a database: quick ones before a gateway starts, and a full one. */
import { resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { messageOf } from "../../errors.ts";
import { checkSum } from "../entry_row.ts";
import { sizeOf } from "./pragma.ts";
import { openLedgerRows } from "./ledger.ts";

/** Files up to this size are looked through as a whole, in bytes: a fraction of a second of work. */
const WHOLE_BYTES = 64 * 1024 * 1024;

/** Of larger ones, the tables that stay small. */
const SMALL_TABLES = ["keys", "price_sheets", "holds", "ledger_start"];

/** Entries whose chain is checked: those that were on their way when the gateway or the machine went down. */
const LAST_ENTRIES = 1000;

/** Looks at the structure of the database. @throws {Error} where it is damaged */
export function checkStructure(db: DatabaseSync): void {
  if (sizeOf(db) <= WHOLE_BYTES) return quickCheck(db);
  const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all().map(({ name }) => name);
  for (const table of SMALL_TABLES) {
    if (tables.includes(table)) quickCheck(db, table);
  }
}

/** Looks at all of the database, its indexes included, however large it is. @throws {Error} where it is damaged */
export function checkAll(db: DatabaseSync): void {
  requireOk(db, "integrity_check(1)");
}

function quickCheck(db: DatabaseSync, table?: string): void {
  requireOk(db, table === undefined ? "quick_check" : `quick_check(${table})`);
}

function requireOk(db: DatabaseSync, check: string): void {
  const verdict = Object.values(db.prepare(`PRAGMA ${check}`).get() ?? {})[0];
  if (verdict !== "ok") throw new Error(`the file is damaged (${String(verdict)})`);
}

/** Checks the chain of the last entries, in a migrated database. @throws {Error} where they do not fit */
export function checkLastEntries(db: DatabaseSync): void {
  const { entries, start } = openLedgerRows(db);
  const last = entries.last(LAST_ENTRIES);
  const first = last[0];
  const begin = start();
  if (first === undefined) return;
  // Of the first one only the place is known, unless it is the first of all.
  let before = first.seq === begin.seq + 1 ? begin : undefined;
  for (const entry of last) {
    const fits = before === undefined ||
      (entry.seq === before.seq + 1 && entry.check === checkSum(entry, before.check));
    if (!fits) throw new Error(`the file is damaged (the check sum of entry ${entry.seq} of the ledger does not fit)`);
    before = { ...begin, seq: entry.seq, check: entry.check };
  }
}

/** Problems reported; a file that has more is lost anyway. */
const MOST_PROBLEMS = 20;

/**
 * Lists the damage in the structure of a SQLite store and its indexes; empty if it is intact. It reads the whole file
 * and blocks the process: about a second per million entries.
 */
export function findDamage(path: string): string[] {
  try {
    // Resolved, so that no path reads as one of SQLite's own names, such as ":memory:".
    const db = new DatabaseSync(resolve(path), { readOnly: true });
    try {
      const rows = db.prepare(`PRAGMA integrity_check(${MOST_PROBLEMS})`).all();
      return rows.map((row) => String(Object.values(row)[0])).filter((verdict) => verdict !== "ok");
    } finally {
      db.close();
    }
  } catch (error) {
    return [messageOf(error)];
  }
}
