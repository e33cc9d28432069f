/** Finds the end of a JSON object or array that arrives in pieces, without keeping its text. */

/** Follows the text of one JSON value. */
export interface JsonEndFinder {
  /** True once the outermost object or array is closed. */
  readonly complete: boolean;
  push(piece: string): void;
}

const QUOTE = 0x22, BACKSLASH = 0x5c;
const OPEN_ARRAY = 0x5b, CLOSE_ARRAY = 0x5d, OPEN_OBJECT = 0x7b, CLOSE_OBJECT = 0x7d;

/** Creates a finder. It looks only at brackets and strings, so the text need not be valid JSON. */
export function jsonEndFinder(): JsonEndFinder {
  let depth = 0;
  let complete = false;
  let inString = false;
  /** True if the next piece begins with an escaped character. */
  let isNextEscaped = false;

  /** Returns the index after the closing quote of the open string, or the end of the piece. */
  function skipString(piece: string, start: number): number {
    let from = start;
    while (true) {
      const quote = piece.indexOf('"', from);
      const end = quote < 0 ? piece.length : quote;
      let slashes = end;
      while (slashes > from && piece.charCodeAt(slashes - 1) === BACKSLASH) slashes--;
      const isEscaped = (end - slashes) % 2 === 1;
      if (quote < 0) {
        isNextEscaped = isEscaped;
        return end;
      }
      from = quote + 1;
      if (isEscaped) continue;
      inString = false;
      return from;
    }
  }

  return {
    get complete() {
      return complete;
    },
    push(piece) {
      let index = 0;
      if (isNextEscaped && piece !== "") {
        isNextEscaped = false;
        index = 1;
      }
      while (index < piece.length && !complete) {
        if (inString) {
          index = skipString(piece, index);
          continue;
        }
        const code = piece.charCodeAt(index++);
        if (code === QUOTE) inString = true;
        else if (code === OPEN_OBJECT || code === OPEN_ARRAY) depth++;
        else if (code === CLOSE_OBJECT || code === CLOSE_ARRAY) complete = --depth <= 0;
      }
    },
  };
}
