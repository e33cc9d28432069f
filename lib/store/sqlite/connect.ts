/** Opens connections to a SQLite file. */
import { DatabaseSync } from "node:sqlite";

/** Longest blocking wait for another process's write lock, in milliseconds. */
export const BUSY_MS = 5000;

/** Size to which the write-ahead log is truncated after it has grown, in bytes. */
const MAX_IDLE_LOG_BYTES = 64 * 1024 * 1024;

/**
 * Opens a connection.
 * @param synchronous FULL: each commit is synced; NORMAL: a commit is durable after a later sync of the log. OFF would
 * break the guarantees of `WalSync`
 */
export function connect(file: string, synchronous: "FULL" | "NORMAL"): DatabaseSync {
  const db = new DatabaseSync(file);
  try {
    db.exec(`PRAGMA busy_timeout = ${BUSY_MS}`);
    // Has an effect only in a new file, before its first page is written, as the next line does. In a file without it,
    // freed pages are used again, but never returned to the system.
    db.exec("PRAGMA auto_vacuum = INCREMENTAL");
    db.exec("PRAGMA journal_mode = WAL");
    db.exec(`PRAGMA journal_size_limit = ${MAX_IDLE_LOG_BYTES}`);
    db.exec(`PRAGMA synchronous = ${synchronous}`);
    // On macOS, only a full fsync reaches the disk.
    db.exec("PRAGMA fullfsync = ON");
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}
