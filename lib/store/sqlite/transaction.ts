/** Runs transactions, and waits for the write lock of another process without blocking this one. */
import type { DatabaseSync } from "node:sqlite";

/** Pause between two tries while another process writes, in milliseconds, and most tries: 5 seconds in total. */
const RETRY_PAUSE_MS = 5;
const MAX_TRIES = 1000;

/** Runs work in a transaction, which is rolled back if the work throws. @throws the error of the work */
export function atomically<Result>(db: DatabaseSync, work: () => Result): Result {
  db.exec("BEGIN IMMEDIATE");
  try {
    const result = work();
    db.exec("COMMIT");
    return result;
  } catch (error) {
    try {
      db.exec("ROLLBACK");
    } catch {
      // After some errors SQLite has already rolled back. The first error is reported.
    }
    throw error;
  }
}

/**
 * Runs a step. Retries it for up to 5 seconds while another process has the write lock. The step must not have changed
 * anything when it throws.
 */
export async function whenFree<Result>(step: () => Result | Promise<Result>): Promise<Result> {
  for (let tries = 1;; tries++) {
    try {
      return await step();
    } catch (error) {
      if (tries === MAX_TRIES || !isBusy(error)) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_PAUSE_MS));
  }
}

/**
 * Returns a part of a store whose calls wait as `whenFree` does. Only its methods that are asynchronous may be called.
 */
export function waitingForLock<Part extends object>(part: Part): Part {
  const calls = Object.entries(part).map(([name, call]: [string, (...args: unknown[]) => unknown]) =>
    [name, (...args: unknown[]) => whenFree(() => call(...args))] as const
  );
  // Each call has the parameters and the result of its method.
  return Object.fromEntries(calls) as Part;
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && /database (?:table )?is locked/.test(error.message);
}

/**
 * Returns whether the disk or the file failed, and not the statement. A full disk does not count: it may have room
 * later.
 */
export function isBroken(error: unknown): boolean {
  return error instanceof Error && /disk I\/O error|malformed|not a database/.test(error.message);
}
