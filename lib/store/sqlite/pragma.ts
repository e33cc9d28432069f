/** Reads SQLite pragmas. */
import type { DatabaseSync } from "node:sqlite";

/** Reads a numeric pragma. */
export function readNumber(db: DatabaseSync, pragma: string): number {
  return Number(Object.values(db.prepare(`PRAGMA ${pragma}`).get() ?? {})[0]);
}
