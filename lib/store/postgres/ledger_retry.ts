/** Retries statements that Postgres aborted because of concurrent ones. */

/** Tries before the error is returned. */
const MAX_TRIES = 5;

/** SQLSTATEs of a rolled back statement that may be repeated: serialization failure and deadlock. */
const CONFLICTS: ReadonlySet<unknown> = new Set(["40001", "40P01"]);

/** Runs a statement, and repeats it after a conflict with another one. */
export async function retryConflicts<Result>(run: () => PromiseLike<Result>): Promise<Result> {
  for (let tries = 1;; tries++) {
    try {
      return await run();
    } catch (error) {
      const isConflict = error instanceof Error && "code" in error && CONFLICTS.has(error.code);
      if (!isConflict || tries === MAX_TRIES) throw error;
    }
  }
}
