/** Splits texts into tokens, for limits in tokens. */
import { characterEnd } from "../text.ts";
import type { TokenCounter } from "./counter.ts";

/** Shortest text that is split between two pauses, in UTF-16 code units, unless the text ends before. */
const MIN_CHUNK = 4096;
/** Longest text that is split between two pauses, in UTF-16 code units. */
const MAX_CHUNK = 16_384;

/** The text of a token, or of several tokens that share a character. */
export interface TokenPiece {
  text: string;
  tokens: number;
}

/** Yields the tokens of a text, and `undefined` at each pause in a long text. */
export function* tokenPieces(text: string, counter: TokenCounter): Generator<TokenPiece | undefined, void, undefined> {
  for (let from = 0; from < text.length;) {
    const to = chunkEnd(text, from);
    for (const piece of counter.split(text.slice(from, to))) {
      // deno-lint-ignore no-control-regex
      yield { text: piece, tokens: /^[\x00-\x7f]*$/.test(piece) ? 1 : counter.count(piece) };
    }
    from = to;
    if (from < text.length) yield undefined;
  }
}

/**
 * Returns the end of a chunk that no token crosses: between a letter or digit and a space, or between letters and
 * digits. A long text without such a boundary is cut anywhere, which may add a token.
 */
function chunkEnd(text: string, from: number): number {
  const near = text.slice(from + MIN_CHUNK, from + MAX_CHUNK);
  const boundary = /\p{L}(?=[ \p{N}])|\p{N}(?=[ \p{L}])/u.exec(near);
  if (boundary !== null) return from + MIN_CHUNK + boundary.index + boundary[0].length;
  return characterEnd(text, from + MAX_CHUNK);
}
