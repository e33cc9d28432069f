/** Settings that are valid but may be a mistake. */

/** One warning. */
export interface Warning {
  /** Path of the member, such as `models[1].pricing`. */
  path: string;
  /** The problem and its remedy, in one line. */
  message: string;
}

/** Creates a warning. */
export function warning(path: string, message: string): Warning {
  return { path, message };
}

/** The line of a warning. */
export function warningText({ path, message }: Warning): string {
  return `${path}: ${message}`;
}
