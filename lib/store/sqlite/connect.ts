/** Connections to a SQLite file. */
import { DatabaseSync } from "node:sqlite";

/** Longest wait for another process's write lock where waiting is unavoidable, in milliseconds. */
export const BUSY_MS = 5000;

/** Size that the write-ahead log is truncated to after it has grown, in bytes. */
const LOG_BYTES = 64 * 1024 * 1024;

/** Opens a connection. FULL syncs each commit; NORMAL leaves commits to a later sync of the log. Never OFF. */
export function connect(file: string, synchronous: "FULL" | "NORMAL"): DatabaseSync {
  const db = new DatabaseSync(file);
  try {
    db.exec(`PRAGMA busy_timeout = ${BUSY_MS}`);
    // For new files only: SQLite requires it before the first page, which the next line writes. In a file without it,
    // freed pages are reused but never returned to the system.
    db.exec("PRAGMA auto_vacuum = INCREMENTAL");
    db.exec("PRAGMA journal_mode = WAL");
    db.exec(`PRAGMA journal_size_limit = ${LOG_BYTES}`);
    db.exec(`PRAGMA synchronous = ${synchronous}`);
    // On macOS, only a full fsync reaches the disk.
    db.exec("PRAGMA fullfsync = ON");
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}
