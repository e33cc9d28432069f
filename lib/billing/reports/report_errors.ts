/** Errors of reports and searches. */

/** A parameter that is invalid, or names an unknown key, group, model or upstream. */
export class ReportQueryError extends RangeError {
  override name = "ReportQueryError";
  /** Name of the parameter. */
  readonly param: string;

  constructor(message: string, param: string, cause?: unknown) {
    super(message, { cause });
    this.param = param;
  }
}

/** Some entries of the period are pruned. */
export class PrunedEntriesError extends RangeError {
  override name = "PrunedEntriesError";
  /** The first complete day, as `2026-11-21`. */
  readonly from: string;

  constructor(message: string, from: string) {
    super(message);
    this.from = from;
  }
}
