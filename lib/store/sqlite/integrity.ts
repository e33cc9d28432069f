/** Integrity checks of a database: quick ones before a gateway starts, and a full one. */
import { resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { messageOf } from "../../errors.ts";
import { checkSum } from "../entry_row.ts";
import { sizeOf } from "./pragma.ts";
import { openLedgerRows } from "./ledger.ts";

/** Size up to which a file is checked completely, in bytes: a fraction of a second of work. */
const WHOLE_BYTES = 64 * 1024 * 1024;

/** Tables that stay small: the ones checked in larger files. */
const SMALL_TABLES = ["keys", "price_sheets", "holds", "ledger_start"];

/** Last entries whose chain is checked: those most at risk in a crash. */
const LAST_ENTRIES = 1000;

/** Checks the structure of the database, completely only if it is small. @throws {Error} if it is damaged */
export function checkStructure(db: DatabaseSync): void {
  if (sizeOf(db) <= WHOLE_BYTES) return quickCheck(db);
  const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all().map(({ name }) => name);
  for (const table of SMALL_TABLES) {
    if (tables.includes(table)) quickCheck(db, table);
  }
}

/** Checks the whole database with its indexes, whatever its size. @throws {Error} if it is damaged */
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

/** Checks the chain of the last entries of a migrated database. @throws {Error} if it is broken */
export function checkLastEntries(db: DatabaseSync): void {
  const { entries, start } = openLedgerRows(db);
  const last = entries.last(LAST_ENTRIES);
  const first = last[0];
  const begin = start();
  if (first === undefined) return;
  // The first of these entries cannot be checked against its predecessor, unless it is the first in the ledger.
  let before = first.seq === begin.seq + 1 ? begin : undefined;
  for (const entry of last) {
    const fits = before === undefined ||
      (entry.seq === before.seq + 1 && entry.check === checkSum(entry, before.check));
    if (!fits) throw new Error(`the file is damaged (the check sum of entry ${entry.seq} of the ledger does not fit)`);
    before = { ...begin, seq: entry.seq, check: entry.check };
  }
}

/** Most problems reported. */
const MAX_PROBLEMS = 20;

/**
 * Lists the damage in the structure of a SQLite store and its indexes; empty if it is intact. Reads the whole file and
 * blocks the process: about a second per million entries.
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
