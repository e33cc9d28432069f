/** Takes exclusive ownership of a file for the process that serves from it. */
import { DatabaseSync } from "node:sqlite";
import { makeFile } from "../folder.ts";

/** Ownership of a file, which ends with `close` or with the process. */
export interface Ownership {
  close(): void;
}

/**
 * Takes ownership by an exclusive transaction on a lock file, a tiny database. The operating system frees the locks of
 * SQLite when the process ends, so a crash leaves no stale lock. The owned file itself cannot be locked this way,
 * because other commands read it and change keys meanwhile.
 * @param file path of the lock file, which must exist
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

/** Takes ownership of a store or journal by a lock file beside it. @throws {Error} if another process owns it */
export function takeFileOwnership(file: string): Ownership {
  makeFile(`${file}-owner`);
  return takeOwnership(`${file}-owner`);
}
