/** Collects the findings of an audit. */
import { messageOf } from "../../errors.ts";
import type { Difference } from "./schemas.ts";

/** Maximum number of differences that a report lists; further ones are only counted. */
const MAX_REPORTED = 100;

/** Counts all differences, and stores the first ones for the report. */
export class Findings {
  /** The first differences, at most 100. */
  readonly reported: Difference[] = [];
  #count = 0;

  /** Number of all differences, including those that are not stored. */
  get count(): number {
    return this.#count;
  }

  /** Runs a part of the audit. An error becomes a finding, and the result is `undefined`. */
  async attempt<T>(what: string, work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      const why = messageOf(error);
      this.add({ kind: "unreadable", message: `${what} cannot be read: ${why}` });
      return undefined;
    }
  }

  add(difference: Difference): void {
    this.#count++;
    if (this.reported.length < MAX_REPORTED) this.reported.push(difference);
  }
}
