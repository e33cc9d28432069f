/** UTF-8 of texts that are long, or come in pieces. */
import { wholeEnd } from "./surrogates.ts";

/** Characters of a piece: some 0.5 ms where each takes three bytes. */
const PIECE_CHARS = 131_072;

const encoder = new TextEncoder();

/** The bytes that `TextEncoder` makes of a text, in steps: 10 million Han characters at once take 50 ms. */
export function* encodeSteps(text: string, pieceChars: number = PIECE_CHARS): Generator<void, Uint8Array<ArrayBuffer>> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for (let from = 0; from < text.length;) {
    const to = wholeEnd(text, from + pieceChars);
    const piece = encoder.encode(text.slice(from, to));
    pieces.push(piece);
    size += piece.length;
    from = to;
    yield;
  }
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
    yield;
  }
  return bytes;
}

/**
 * Decodes UTF-8 that comes in pieces; without one, what is left. A byte order mark at the very beginning is dropped. The
 * runtime's decoder also drops one where a later piece begins.
 */
export function pieceDecoder(): (piece?: Uint8Array) => string {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let begun = false;
  return (piece) => {
    const text = piece === undefined ? decoder.decode() : decoder.decode(piece, { stream: true });
    if (begun || text === "") return text;
    begun = true;
    return text.startsWith("\ufeff") ? text.slice(1) : text;
  };
}
