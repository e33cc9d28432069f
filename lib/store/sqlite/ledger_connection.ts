/** Opens the connection on which the owner of a SQLite file writes entries. */
import type { DatabaseSync } from "node:sqlite";
import type { LedgerStore } from "../ledger.ts";
import { connect } from "./connect.ts";
import { openOwnedLedger } from "./owned_ledger.ts";
import { readNumber } from "./pragma.ts";
import type { SqliteReports } from "./usage.ts";
import { WalSync } from "./wal_sync.ts";

/** Open parts of a store, in the order in which they must be closed. */
export type OpenParts = { close(): void | Promise<void> }[];

/** Opens the ledger of a file on a connection of its own, and adds the parts to `opened`. */
export function openLedgerConnection(
  { file, opened, reports }: { file: string; opened: OpenParts; reports: SqliteReports },
): { ledger: LedgerStore; connection: DatabaseSync } {
  const connection = connect(file, "NORMAL");
  opened.unshift(connection);
  // The first read opens the write-ahead log.
  readNumber(connection, "user_version");
  const sync = new WalSync(file);
  opened.unshift(sync);
  const ledger = openOwnedLedger(connection, { sync, reports });
  // From now on the ledger itself waits for the lock, without blocking the event loop.
  connection.exec("PRAGMA busy_timeout = 0");
  return { ledger, connection };
}
