/** Findings of an audit. */
import { messageOf } from "../../errors.ts";

/** Differences reported one by one; more are only counted. */
const MAX_REPORTED = 100;

/** Kinds of differences. */
export const DIFFERENCE_KINDS = [
  /** An entry is missing, or there twice. */
  "gap",
  /** An entry, or the one before it, is not what was entered. */
  "check",
  /** A number cannot be. */
  "number",
  /** Tokens and prices make another cost. */
  "cost",
  /** The entries of a day make other sums. */
  "day_sum",
  /** Something is held that should not be. */
  "hold",
  /** The place that the entries start at makes no sense. */
  "start",
  /** Something cannot be read. */
  "unreadable",
  /** The file is damaged. Only the command looks at it. */
  "file",
] as const;

/** Something that is not as it must be. */
export interface Difference {
  kind: typeof DIFFERENCE_KINDS[number];
  /** Place in the ledger, where it is about an entry. */
  seq?: number;
  /** Id of the request, where it is about one. */
  id?: string;
  message: string;
}

/** A list of differences that stays short however many there are. */
export class Findings {
  readonly reported: Difference[] = [];
  #count = 0;

  /** Number of all differences, unreported ones included. */
  get count(): number {
    return this.#count;
  }

  /** Runs a part of the audit; where it throws, adds a finding and returns `undefined`. */
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
    if (this.reported.length < MAX_REPORTED) this.reported.push(difference);
  }
}
