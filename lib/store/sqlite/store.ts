/** A store in one SQLite file. One process may serve from it; others of the machine read it and change keys meanwhile. */
import { resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { messageOf } from "../../errors.ts";
import { makeFile } from "../folder.ts";
import { MIGRATIONS } from "./migrations.ts";
import { openSqliteAlerts } from "./alerts.ts";
import { openSqliteAnswers } from "./answers.ts";
import { BUSY_MS, connect } from "./connect.ts";
import { openSqliteKeys } from "./keys.ts";
import { openGuestLedger } from "./ledger.ts";
import { openLedgerConnection, type OpenParts } from "./ledger_connection.ts";
import { bringUpToDate, knownVersion, makeTables, previewFile } from "./migrate.ts";
import { takeFile } from "./owner_lock.ts";
import { openSqliteReports } from "./usage.ts";
import { type Migrated, requireCurrent, type Store, StoreError } from "../store.ts";

/** Options for opening a file. */
export interface SqliteOptions {
  /** True for the process that serves from it, which alone can write ledger entries. */
  own?: boolean;
  /** Called when the file was brought up to date. */
  migrated?: (facts: Migrated) => void;
}

/**
 * Opens the database and migrates it. Missing folders are created with mode 0700, a missing file with 0600.
 *
 * @throws {StoreError} if the file cannot be opened, is damaged, was written by a newer version, or is served from:
 * with `own` by any gateway, otherwise by an older version. A refused file stays unchanged
 */
export function openSqliteStore(path: string, { own = false, migrated }: SqliteOptions = {}): Store {
  return opening(path, (opened) => {
    // Resolved, so that no path reads as one of SQLite's own names, such as ":memory:".
    makeFile(resolve(path));
    // SQLite names its log after the file itself, whatever links lead to it.
    const file = Deno.realPathSync(resolve(path));
    if (own) opened.unshift(takeFile(file));
    const preview = previewFile(file, own);
    opened.unshift(preview);
    const facts = preview.version > 0 && preview.version < MIGRATIONS.length ? bringUpToDate(file, own) : undefined;
    const db = connect(file, "FULL");
    opened.unshift(db);
    if (preview.version === 0) makeTables(db);
    opened.splice(opened.indexOf(preview), 1);
    preview.close();
    if (facts !== undefined) migrated?.(facts);
    const reports = openSqliteReports(file);
    const owned = own ? openLedgerConnection({ file, opened, reports }) : undefined;
    opened.unshift(reports);
    return {
      // Every commit of these is on the disk when it is done.
      keys: openSqliteKeys(db, owned?.connection),
      answers: openSqliteAnswers(db),
      alerts: openSqliteAlerts(db),
      ledger: owned?.ledger ?? openGuestLedger(db, reports),
      close: () => closeAll(opened),
    };
  });
}

/**
 * Opens a database that is there and up to date, to read it. Nothing is written, and what would change it fails.
 *
 * @throws {StoreError} where the file cannot be opened, or is of another version
 */
export function openSqliteReader(path: string): Store {
  return opening(path, (opened) => {
    const file = Deno.realPathSync(resolve(path));
    const db = new DatabaseSync(file, { readOnly: true });
    opened.unshift(db);
    db.exec(`PRAGMA busy_timeout = ${BUSY_MS}`);
    requireCurrent(knownVersion(db), MIGRATIONS.length);
    const reports = openSqliteReports(file);
    opened.unshift(reports);
    return {
      keys: openSqliteKeys(db),
      answers: openSqliteAnswers(db),
      alerts: openSqliteAlerts(db),
      ledger: openGuestLedger(db, reports),
      close: () => closeAll(opened),
    };
  });
}

/** Opens a store; on an error, closes the parts that are open already. @throws {StoreError} */
function opening(path: string, open: (opened: OpenParts) => Store): Store {
  const opened: OpenParts = [];
  try {
    return open(opened);
  } catch (cause) {
    for (const each of opened) each.close();
    const why = messageOf(cause);
    throw new StoreError(`Cannot open the store "${path}": ${why}`, { cause });
  }
}

async function closeAll(opened: OpenParts): Promise<void> {
  for (const each of opened) await each.close();
}
