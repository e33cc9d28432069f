/** Splits texts into tokens, for limits in tokens. */
import { characterEnd } from "../text.ts";
import type { TokenCounter } from "./counter.ts";

/** Text cut into tokens between two pauses, in UTF-16 code units: a little more than the first, never more than the second. */
const CHUNK = 4096;
const MAX_CHUNK = 16_384;

/** A token's text; several tokens' where a character takes more than one. */
export interface TokenPiece {
  text: string;
  tokens: number;
}

/** Iterates over the tokens of a text. `undefined` marks a pause in a long text. */
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
 * Returns the end of a chunk. No token crosses it: it is between a letter or digit and a space, or between letters and
 * digits. A long text without this boundary is cut anywhere, and may count one token more.
 */
function chunkEnd(text: string, from: number): number {
  const near = text.slice(from + CHUNK, from + MAX_CHUNK);
  const boundary = /\p{L}(?=[ \p{N}])|\p{N}(?=[ \p{L}])/u.exec(near);
  if (boundary !== null) return from + CHUNK + boundary.index + boundary[0].length;
  return characterEnd(text, from + MAX_CHUNK);
}
