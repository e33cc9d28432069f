/** A look through the whole file of a store. */
import { resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { messageOf } from "../errors.ts";

/** Problems that are told; a file that has more is lost anyway. */
const MOST_PROBLEMS = 20;

/**
 * What is wrong with the structure of a SQLite store, its indexes included; empty where it is whole. It reads the whole file
 * and keeps the calling process busy until it is done: about a second per million entries.
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
