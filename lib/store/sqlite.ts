/** A store in one SQLite file, which several processes of one machine may open at a time. */
import { dirname, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { MIGRATIONS } from "./migrations.ts";
import { openMemoryLedger } from "./memory_ledger.ts";
import { openSqliteAnswers } from "./sqlite_answers.ts";
import { openSqliteKeys } from "./sqlite_keys.ts";
import { type Store, StoreError } from "./store.ts";

/**
 * Opens the database, creating its folder (0700) and file (0600) where they are missing, and brings it up to date.
 *
 * @throws {StoreError} where the file cannot be opened, is damaged, or was written by a newer version
 */
export function openSqliteStore(path: string): Store {
  const db = open(path);
  return {
    keys: openSqliteKeys(db),
    ledger: openMemoryLedger(),
    answers: openSqliteAnswers(db),
    // deno-lint-ignore require-await -- what is thrown here must reject
    async close() {
      db.close();
    },
  };
}

function open(path: string): DatabaseSync {
  let db: DatabaseSync | undefined;
  try {
    // Resolved, so that no path reads as one of SQLite's own names, such as ":memory:".
    const file = resolve(path);
    createFile(file);
    db = new DatabaseSync(file);
    db.exec("PRAGMA busy_timeout = 5000");
    db.exec("PRAGMA journal_mode = WAL");
    db.exec("PRAGMA synchronous = FULL");
    check(db);
    migrate(db);
    return db;
  } catch (cause) {
    db?.close();
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new StoreError(`Cannot open the store "${path}": ${why}`, { cause });
  }
}

/** The journals beside the file take its mode from SQLite. */
function createFile(file: string): void {
  Deno.mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  Deno.openSync(file, { create: true, write: true, mode: 0o600 }).close();
}

function check(db: DatabaseSync): void {
  const verdict = Object.values(db.prepare("PRAGMA quick_check(1)").get() ?? {})[0];
  if (verdict !== "ok") throw new Error(`the file is damaged (${String(verdict)})`);
}

function migrate(db: DatabaseSync): void {
  // Taken before the version is read: two processes that start together must not both run a step.
  db.exec("BEGIN IMMEDIATE");
  try {
    const version = Number(Object.values(db.prepare("PRAGMA user_version").get() ?? {})[0]);
    if (version > MIGRATIONS.length) {
      throw new Error(
        `it was written by a newer version of Sluice (shape ${version}, known up to ${MIGRATIONS.length})`,
      );
    }
    for (const step of MIGRATIONS.slice(version)) db.exec(step);
    db.exec(`PRAGMA user_version = ${MIGRATIONS.length}`);
    db.exec("COMMIT");
  } catch (error) {
    db.exec("ROLLBACK");
    throw error;
  }
}
