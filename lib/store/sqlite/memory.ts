// deno-lint-ignore-file require-await -- calls that throw must reject
/** Opens a store that ends with the process: a SQLite database in memory. */
import { DatabaseSync } from "node:sqlite";
import type { AlertStore } from "../alerts.ts";
import type { Store } from "../store.ts";
import { openSqliteAlerts } from "./alerts.ts";
import { openSqliteKeys } from "./keys.ts";
import { makeTables } from "./migrate.ts";
import { openOwnedLedger } from "./owned_ledger.ts";
import { openSideTables } from "./side_tables.ts";
import { openMemoryReports } from "./usage.ts";

/** The file of an empty store; undefined before the first one is opened. */
let emptyFile: Uint8Array | undefined;

/**
 * Opens an empty database. All but the first of a process copy its tables, because creating them takes ten times as
 * long. Only tests open more than one ledger. SQLite limits a copy to 1 GiB.
 */
function openEmpty(): DatabaseSync {
  const db = new DatabaseSync(":memory:");
  if (emptyFile !== undefined) {
    db.deserialize(emptyFile);
    return db;
  }
  db.exec("PRAGMA auto_vacuum = INCREMENTAL");
  makeTables(db);
  emptyFile = db.serialize();
  return db;
}

/** Opens an empty store. @param now Unix time in milliseconds; absent: `Date.now` */
export function openMemoryStore(now?: () => number): Store {
  const db = openEmpty();
  return {
    keys: openSqliteKeys(db),
    ...openSideTables(db, { now }),
    ledger: openOwnedLedger(db, { reports: openMemoryReports(db) }),
    close: async () => db.close(),
  };
}

/** Opens alerts that end with the process. */
export function openMemoryAlerts(): AlertStore {
  return openSqliteAlerts(openEmpty());
}
