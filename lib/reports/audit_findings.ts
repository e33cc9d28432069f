/** What an audit finds. */
import { messageOf } from "../errors.ts";

/** Differences that are told one by one; more are counted. */
const MOST_TOLD = 100;

/** Something that is not as it must be. */
export interface Difference {
  kind: "gap" | "check" | "number" | "cost" | "day_sum" | "hold" | "start" | "unreadable" | "file";
  /** Place in the ledger, where it is about an entry. */
  seq?: number;
  /** Id of the request, where it is about one. */
  id?: string;
  message: string;
}

/** A list of differences that stays short however many there are. */
export class Findings {
  readonly told: Difference[] = [];
  #count = 0;

  /** All of them, those that are not told included. */
  get count(): number {
    return this.#count;
  }

  /** Does some of the work; where it throws, what cannot be read is noted, and `undefined` is the result. */
  async attempt<T>(what: string, work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      const why = messageOf(error);
      this.add({ kind: "unreadable", message: `${what} cannot be read: ${why}` });
      return undefined;
    }
  }

  /** Notes a difference. */
  add(difference: Difference): void {
    this.#count++;
    if (this.told.length < MOST_TOLD) this.told.push(difference);
  }
}
