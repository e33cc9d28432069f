/** The errors that reports and searches throw. */

/** Thrown if a parameter is invalid, or names an unknown key, group, model or upstream. */
export class ReportQueryError extends RangeError {
  override name = "ReportQueryError";
  readonly param: string;

  constructor(message: string, param: string, cause?: unknown) {
    super(message, { cause });
    this.param = param;
  }
}

/** Thrown if a report needs entries that were pruned. */
export class PrunedEntriesError extends RangeError {
  override name = "PrunedEntriesError";
  /** The first day of which all entries exist, such as `2026-11-21`. */
  readonly from: string;

  constructor(message: string, from: string) {
    super(message);
    this.from = from;
  }
}
