/** Findings of an audit. */
import { messageOf } from "../../errors.ts";

/** Most differences reported; more are only counted. */
const MAX_REPORTED = 100;

/** Kinds of differences. */
export const DIFFERENCE_KINDS = [
  /** An entry is missing or duplicated. */
  "gap",
  /** The check sum of an entry does not match it or the one before. */
  "check",
  /** An impossible number. */
  "number",
  /** The cost differs from tokens times prices. */
  "cost",
  /** A sum per day differs from its entries. */
  "day_sum",
  /** The entries of an end user add up to another sum. */
  "user_sum",
  /** An invalid hold. */
  "hold",
  /** An invalid start of the ledger. */
  "start",
  /** Unreadable data. */
  "unreadable",
  /** A damaged file; found only by the CLI command. */
  "file",
] as const;

/** A difference. */
export interface Difference {
  kind: typeof DIFFERENCE_KINDS[number];
  /** Seq of the entry, if it is about one. */
  seq?: number;
  /** Id of the request, if it is about one. */
  id?: string;
  message: string;
}

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
