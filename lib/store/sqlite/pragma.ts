/** Reads SQLite pragmas. */
import type { DatabaseSync } from "node:sqlite";

/** Reads a numeric pragma. */
export function readNumber(db: DatabaseSync, pragma: string): number {
  return Number(Object.values(db.prepare(`PRAGMA ${pragma}`).get() ?? {})[0]);
}

/** Returns the size of the database, in bytes. */
export function sizeOf(db: DatabaseSync): number {
  return readNumber(db, "page_count") * readNumber(db, "page_size");
}
