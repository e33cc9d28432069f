/**
 * Opens a store in a SQLite file. One process serves from it; others on the same machine can read it and change keys.
 */
import { resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { messageOf } from "../../errors.ts";
import { makeFile } from "../folder.ts";
import { MIGRATIONS } from "./migrations.ts";
import { BUSY_MS, connect } from "./connect.ts";
import { openSqliteKeys } from "./keys.ts";
import { openGuestLedger } from "./ledger.ts";
import { openLedgerConnection, type OpenParts } from "./ledger_connection.ts";
import { knownVersion, makeTables, migrateFile, previewFile } from "./migrate.ts";
import { takeFileOwnership } from "./owner_lock.ts";
import { openSideTables } from "./side_tables.ts";
import { waitingForLock } from "./transaction.ts";
import { openSqliteReports } from "./usage.ts";
import { type Migrated, requireCurrent, type Store, StoreError } from "../store.ts";

/** Options for opening a file. */
export interface SqliteOptions {
  /** True for the process that serves from the file, which is the only one that can write entries. */
  own?: boolean;
  migrated?: (facts: Migrated) => void;
}

/**
 * Opens a database and migrates it. Creates missing folders (0700) and a missing file (0600).
 * @throws {StoreError} if the file cannot be opened, is damaged, was written by a newer version, or is in use: with
 * `own` by any gateway, otherwise by one of an older version. A rejected file stays unchanged
 */
export function openSqliteStore(path: string, { own = false, migrated }: SqliteOptions = {}): Store {
  return openOrClose(path, (opened) => {
    // Resolved, so that no path is one of SQLite's special names, such as ":memory:".
    makeFile(resolve(path));
    // SQLite names its log after the real path of the file.
    const file = Deno.realPathSync(resolve(path));
    if (own) opened.unshift(takeFileOwnership(file));
    const preview = previewFile(file, own);
    opened.unshift(preview);
    const facts = preview.version > 0 && preview.version < MIGRATIONS.length ? migrateFile(file, own) : undefined;
    const db = connect(file, "FULL");
    opened.unshift(db);
    if (preview.version === 0) makeTables(db);
    opened.splice(opened.indexOf(preview), 1);
    preview.close();
    if (facts !== undefined) migrated?.(facts);
    const reports = openSqliteReports(file);
    const owned = own ? openLedgerConnection({ file, opened, reports }) : undefined;
    opened.unshift(reports);
    // Everything but the ledger uses the connection whose commits are synced at once.
    const parts = { keys: openSqliteKeys(db, owned?.connection), ...openSideTables(db, { own }) };
    const close = () => closeAll(opened);
    if (owned === undefined) return { ...parts, ledger: openGuestLedger(db, reports), close };
    return { ...withoutBlocking(db, parts), ledger: owned.ledger, close };
  });
}

/**
 * Opens an existing, current database for reading. Writes fail.
 * @throws {StoreError} if the file cannot be opened, or is of another version
 */
export function openSqliteReader(path: string): Store {
  return openOrClose(path, (opened) => {
    const file = Deno.realPathSync(resolve(path));
    const db = new DatabaseSync(file, { readOnly: true });
    opened.unshift(db);
    db.exec(`PRAGMA busy_timeout = ${BUSY_MS}`);
    requireCurrent(knownVersion(db), MIGRATIONS.length);
    const reports = openSqliteReports(file);
    opened.unshift(reports);
    return {
      keys: openSqliteKeys(db),
      ...openSideTables(db),
      ledger: openGuestLedger(db, reports),
      close: () => closeAll(opened),
    };
  });
}

/** Makes the calls of parts wait for the lock of another process without blocking the event loop. */
function withoutBlocking(
  db: DatabaseSync,
  { keys, answers, alerts, operators }: Pick<Store, "keys" | "answers" | "alerts" | "operators">,
): Pick<Store, "keys" | "answers" | "alerts" | "operators"> {
  db.exec("PRAGMA busy_timeout = 0");
  return {
    keys: { ...waitingForLock(keys), version: keys.version },
    answers: waitingForLock(answers),
    alerts: waitingForLock(alerts),
    operators: waitingForLock(operators),
  };
}

const ACCESS_ADVICE =
  "it, the files beside it and their folder must be readable and writable for this user, and the disk " +
  "not read-only";

/** Advice that SQLite's messages lack, by their beginnings. */
const ADVICE: readonly (readonly [message: string, advice: string])[] = [
  ["unable to open database file", ACCESS_ADVICE],
  ["attempt to write a readonly database", ACCESS_ADVICE],
  ["disk I/O error", "the disk is full or failed"],
];

/** Opens a store. After an error, closes the parts that were opened. @throws {StoreError} for any error */
function openOrClose(path: string, open: (opened: OpenParts) => Store): Store {
  const opened: OpenParts = [];
  try {
    return open(opened);
  } catch (cause) {
    for (const part of opened) part.close();
    const message = messageOf(cause);
    const [, advice] = ADVICE.find(([beginning]) => message.startsWith(beginning)) ?? [];
    const reason = advice === undefined ? message : `${message}; ${advice}`;
    throw new StoreError(`Cannot open the store "${path}": ${reason}`, { cause });
  }
}

async function closeAll(opened: OpenParts): Promise<void> {
  for (const part of opened) await part.close();
}
