/** A store in one SQLite file. One process may serve from it; others of the machine read it and change keys meanwhile. */
import { dirname, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { messageOf } from "../errors.ts";
import { MIGRATIONS } from "./migrations.ts";
import { readNumber } from "./pragma.ts";
import { openSqliteAnswers } from "./sqlite_answers.ts";
import { checkLastEntries, checkStructure } from "./sqlite_integrity.ts";
import type { LedgerStore } from "./ledger.ts";
import { openSqliteKeys } from "./sqlite_keys.ts";
import { openGuestLedger } from "./sqlite_ledger.ts";
import { openOwnedLedger } from "./sqlite_ledger_owner.ts";
import { type Ownership, takeOwnership } from "./sqlite_owner.ts";
import { openSqliteUsage, type SqliteUsage } from "./sqlite_usage.ts";
import { type Store, StoreError } from "./store.ts";
import { atomically } from "./transaction.ts";
import { WalSync } from "./wal_sync.ts";

/** Longest wait for another process's write where nothing else can be done meanwhile, in milliseconds. */
const BUSY_MS = 5000;

/** Size that the log is cut back to after it has grown, in bytes. */
const LOG_BYTES = 64 * 1024 * 1024;

/**
 * Opens the database, creating its folder (0700) and file (0600) where they are missing, and brings it up to date.
 *
 * @param own whether this process serves from it: only then is anything entered into the ledger
 * @throws {StoreError} where the file cannot be opened, is damaged, was written by a newer version, or is served from:
 * with `own` in any case, otherwise by an older version
 */
export function openSqliteStore(path: string, { own = false }: { own?: boolean } = {}): Store {
  /** What is open, in the order it is to be closed. */
  const opened: { close(): void | Promise<void> }[] = [];
  try {
    // Resolved, so that no path reads as one of SQLite's own names, such as ":memory:".
    createFile(resolve(path));
    // SQLite names its log after the file itself, whatever links lead to it.
    const file = Deno.realPathSync(resolve(path));
    if (own) opened.unshift(takeFile(file));
    const db = connect(file, "FULL");
    opened.unshift(db);
    if (own) checkStructure(db);
    migrate(db, { file, own });
    const reports = openSqliteUsage(file);
    const owned = own ? openOwned(db, { file, opened, reports }) : undefined;
    opened.unshift(reports);
    return {
      // Every commit of these is on the disk when it is done.
      keys: openSqliteKeys(db, owned?.connection),
      answers: openSqliteAnswers(db),
      ledger: owned?.ledger ?? openGuestLedger(db, reports.usage),
      async close() {
        for (const each of opened) await each.close();
      },
    };
  } catch (cause) {
    for (const each of opened) each.close();
    const why = messageOf(cause);
    throw new StoreError(`Cannot open the store "${path}": ${why}`, { cause });
  }
}

/** Opens the ledger to enter requests, with a connection of its own. */
function openOwned(
  db: DatabaseSync,
  { file, opened, reports }: { file: string; opened: { close(): void | Promise<void> }[]; reports: SqliteUsage },
): { ledger: LedgerStore; connection: DatabaseSync } {
  checkLastEntries(db);
  const connection = connect(file, "NORMAL");
  opened.unshift(connection);
  // The first look into the database opens its log.
  readNumber(connection, "user_version");
  const sync = new WalSync(`${file}-wal`);
  opened.unshift(sync);
  const ledger = openOwnedLedger(connection, { sync, usage: reports.usage, charged: reports.charged });
  // From here on it waits in the background.
  connection.exec("PRAGMA busy_timeout = 0");
  return { ledger, connection };
}

function takeFile(file: string): Ownership {
  createFile(`${file}-owner`);
  return takeOwnership(`${file}-owner`);
}

/**
 * The journals beside the file take its mode from SQLite. A file that is there is not opened: to close it would end the
 * locks that this process has through SQLite.
 */
function createFile(file: string): void {
  Deno.mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  try {
    Deno.openSync(file, { createNew: true, write: true, mode: 0o600 }).close();
  } catch (error) {
    if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
  }
}

/** `synchronous` is when a commit is on the disk: FULL when it is done, NORMAL after a sync of the log. Never OFF. */
function connect(file: string, synchronous: "FULL" | "NORMAL"): DatabaseSync {
  const db = new DatabaseSync(file);
  try {
    db.exec(`PRAGMA busy_timeout = ${BUSY_MS}`);
    // For new files: it must come before the first page is written, which the next line does. Later it says nothing, and
    // what is freed in a file that was begun without it is written to again, but not given back.
    db.exec("PRAGMA auto_vacuum = INCREMENTAL");
    db.exec("PRAGMA journal_mode = WAL");
    db.exec(`PRAGMA journal_size_limit = ${LOG_BYTES}`);
    db.exec(`PRAGMA synchronous = ${synchronous}`);
    // On macOS a sync reaches the disk only so.
    db.exec("PRAGMA fullfsync = ON");
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

function migrate(db: DatabaseSync, { file, own }: { file: string; own: boolean }): void {
  if (knownVersion(db) === MIGRATIONS.length) return;
  const taken: Ownership[] = [];
  try {
    // Looked at again within the transaction: two processes that start together must not both run a step.
    atomically(db, () => {
      const version = knownVersion(db);
      // Steps and their number are written together, so what is in a file of no version is somebody else's.
      if (version === 0 && db.prepare("SELECT 1 FROM sqlite_schema LIMIT 1").get() !== undefined) {
        throw new Error("it is a database of another program, with tables of its own");
      }
      // A gateway that is serving relies on the shape that it found. A file that has none yet is nobody's.
      if (!own && version > 0 && version < MIGRATIONS.length) taken.push(takeOutdated(file));
      for (const step of MIGRATIONS.slice(version)) db.exec(step);
      db.exec(`PRAGMA user_version = ${MIGRATIONS.length}`);
    });
  } finally {
    for (const ownership of taken) ownership.close();
  }
}

function takeOutdated(file: string): Ownership {
  try {
    return takeFile(file);
  } catch (cause) {
    const why = `it is of an older version of Sluice, and ${messageOf(cause)}: that one must end, or start anew, first`;
    throw new Error(why, { cause });
  }
}

/** How many steps have run. @throws {Error} where there are more than this version knows */
function knownVersion(db: DatabaseSync): number {
  const version = readNumber(db, "user_version");
  if (version <= MIGRATIONS.length) return version;
  throw new Error(`it was written by a newer version of Sluice (shape ${version}, known up to ${MIGRATIONS.length})`);
}
