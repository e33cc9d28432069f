/** A warning about a setting that is valid but may be a mistake. */

/** A warning about a setting. */
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

/** Formats a warning as a line. */
export function warningText({ path, message }: Warning): string {
  return `${path}: ${message}`;
}
