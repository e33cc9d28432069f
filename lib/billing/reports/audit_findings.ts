/** Findings of an audit. */
import { messageOf } from "../../errors.ts";
import type { Difference } from "./schemas.ts";

/** Most differences reported; more are only counted. */
const MAX_REPORTED = 100;

/** Collects differences, and stores only the first ones. */
export class Findings {
  readonly reported: Difference[] = [];
  #count = 0;

  /** Number of all differences, including those beyond the limit. */
  get count(): number {
    return this.#count;
  }

  /** Runs a part of the audit; an error becomes a finding and returns `undefined`. */
  async attempt<T>(what: string, work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      const why = messageOf(error);
      this.add({ kind: "unreadable", message: `${what} cannot be read: ${why}` });
      return undefined;
    }
  }

  /** Adds a difference. */
  add(difference: Difference): void {
    this.#count++;
    if (this.reported.length < MAX_REPORTED) this.reported.push(difference);
  }
}
