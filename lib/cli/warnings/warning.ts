/** What may be meant as it is written, and may be a mistake: each with the member it is about, and what to do. */

/** One doubt. */
export interface Doubt {
  /** Path of the member, such as `models[1].pricing`. */
  path: string;
  /** What is the case, and what to do; one line. */
  message: string;
}

/** The line of a doubt. */
export function doubtText({ path, message }: Doubt): string {
  return `${path}: ${message}`;
}
