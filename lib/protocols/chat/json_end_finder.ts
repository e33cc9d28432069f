/** Finds the end of a JSON object or array that comes in pieces, without keeping its text. */
export interface JsonEndFinder {
  /** True once the outermost object or array is closed. */
  readonly complete: boolean;
  push(piece: string): void;
}

/** Follows brackets and strings only: the text need not be valid JSON. */
export function jsonEndFinder(): JsonEndFinder {
  let depth = 0;
  let complete = false;
  let inString = false;
  let escaped = false;
  return {
    get complete() {
      return complete;
    },
    push(piece) {
      for (let at = 0; at < piece.length && !complete; at++) {
        const character = piece[at];
        if (escaped) escaped = false;
        else if (inString) {
          escaped = character === "\\";
          inString = character !== '"';
        } else if (character === '"') inString = true;
        else if (character === "{" || character === "[") depth++;
        else if (character === "}" || character === "]") complete = --depth <= 0;
      }
    },
  };
}
