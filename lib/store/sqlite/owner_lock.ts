/** Ownership of a database by the one process that serves from it. */
import { DatabaseSync } from "node:sqlite";
import { makeFile } from "../folder.ts";

/** Holds a database for this process until it is closed, or the process ends in whatever way. */
export interface Ownership {
  close(): void;
}

/**
 * Takes a database for this process.
 *
 * The lock is a transaction that stays open on a tiny database beside it: SQLite's locks are the system's, which frees
 * them with the process, so that nothing stale can stay after a crash. The database itself cannot be locked so, as other
 * commands read it and change keys meanwhile.
 *
 * @throws {Error} where another process has it
 */
export function takeOwnership(file: string): Ownership {
  const lock = new DatabaseSync(file);
  try {
    lock.exec("PRAGMA busy_timeout = 0");
    lock.exec("BEGIN EXCLUSIVE");
    return lock;
  } catch (cause) {
    lock.close();
    if (cause instanceof Error && /is locked/.test(cause.message)) {
      throw new Error("another gateway is serving from it", { cause });
    }
    throw cause;
  }
}

/** Takes the store in a file for this process, by the lock beside it. @throws {Error} where another process has it */
export function takeFile(file: string): Ownership {
  makeFile(`${file}-owner`);
  return takeOwnership(`${file}-owner`);
}
