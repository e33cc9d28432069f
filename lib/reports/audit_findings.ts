/** What an audit finds. */

/** Differences that are told one by one; more are counted. */
const MOST_TOLD = 100;

/** Something that is not as it must be. */
export interface Difference {
  kind: "gap" | "check" | "number" | "cost" | "day_sum" | "hold" | "unreadable";
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

  /** Notes a difference. */
  add(difference: Difference): void {
    this.#count++;
    if (this.told.length < MOST_TOLD) this.told.push(difference);
  }
}
