/** Statements that the database gave up in favour of another one. */

/** Tries until it is for others to know. */
const MOST_TRIES = 5;

/** Codes of Postgres for a statement that is undone and may be made again: a conflict of order, and a deadlock. */
const CONFLICTS: ReadonlySet<unknown> = new Set(["40001", "40P01"]);

/** Runs a statement, and again where another one was in its way. */
export async function retryConflicts<Result>(run: () => PromiseLike<Result>): Promise<Result> {
  for (let tries = 1;; tries++) {
    try {
      return await run();
    } catch (error) {
      const isConflict = error instanceof Error && "code" in error && CONFLICTS.has(error.code);
      if (!isConflict || tries === MOST_TRIES) throw error;
    }
  }
}
