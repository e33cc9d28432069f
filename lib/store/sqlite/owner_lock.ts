/** Exclusive ownership of a database by the process that serves from it. */
import { DatabaseSync } from "node:sqlite";
import { makeFile } from "../folder.ts";

/** Owns a database until it is closed or the process ends. */
export interface Ownership {
  close(): void;
}

/**
 * Takes ownership of a database.
 *
 * The lock is an open transaction on a tiny database beside it. The operating system frees SQLite's locks with the
 * process, so a crash leaves no stale lock. The database itself cannot be locked this way, because other commands read
 * it and change keys meanwhile.
 * @throws {Error} if another process owns it
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

/** Takes ownership of the store in a file, by the lock beside it. @throws {Error} if another process owns it */
export function takeFile(file: string): Ownership {
  makeFile(`${file}-owner`);
  return takeOwnership(`${file}-owner`);
}
