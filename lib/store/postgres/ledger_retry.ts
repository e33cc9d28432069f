/** Repeats statements that Postgres has rolled back because of concurrent ones. */
import { codeOf } from "../../causes.ts";

/** Maximum number of tries of a statement. */
const MAX_TRIES = 5;

/** SQLSTATEs of rolled back statements that may be repeated: serialization failure and deadlock. */
const CONFLICTS: ReadonlySet<unknown> = new Set(["40001", "40P01"]);

/** Runs a statement, and repeats it after a conflict with another one. @throws the error of the last try */
export async function retryConflicts<Result>(run: () => PromiseLike<Result>): Promise<Result> {
  for (let tries = 1;; tries++) {
    try {
      return await run();
    } catch (error) {
      const isConflict = CONFLICTS.has(codeOf(error));
      if (!isConflict || tries === MAX_TRIES) throw error;
    }
  }
}
