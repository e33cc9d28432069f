/** Transactions that do not block the process while another one writes. */
import type { DatabaseSync } from "node:sqlite";

/** Pause between tries while another process writes, in milliseconds, and the number of tries: 5 seconds in total. */
const PAUSE_MS = 5;
const TRIES = 1000;

/** Runs work in a transaction: all of it or nothing. */
export function atomically<Result>(db: DatabaseSync, work: () => Result): Result {
  db.exec("BEGIN IMMEDIATE");
  try {
    const result = work();
    db.exec("COMMIT");
    return result;
  } catch (error) {
    rollBack(db);
    throw error;
  }
}

function rollBack(db: DatabaseSync): void {
  try {
    db.exec("ROLLBACK");
  } catch {
    // SQLite has already rolled back after some errors. The first error is reported.
  }
}

/** Retries a step while another process has the write lock. The step must not have changed anything when it throws. */
export async function whenFree<Result>(step: () => Result): Promise<Result> {
  for (let tries = 1;; tries++) {
    try {
      return step();
    } catch (error) {
      if (tries === TRIES || !isBusy(error)) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && /database (?:table )?is locked/.test(error.message);
}

/** Returns whether the disk or the file failed, and not the statement. A full disk may have room later. */
export function isBroken(error: unknown): boolean {
  return error instanceof Error && /disk I\/O error|malformed|not a database/.test(error.message);
}
