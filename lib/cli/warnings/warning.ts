/** What may be meant as it is written, and may be a mistake: each with the member it is about, and what to do. */

/** One warning. */
export interface Warning {
  /** Path of the member, such as `models[1].pricing`. */
  path: string;
  /** What is the case, and what to do; one line. */
  message: string;
}

/** The line of a warning. */
export function warningText({ path, message }: Warning): string {
  return `${path}: ${message}`;
}
