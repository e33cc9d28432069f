/** Request bodies of many megabytes as bytes. */
import { inSlices, LONG_STEP } from "../pace.ts";
import { wholeEnd } from "../surrogates.ts";

/** Characters of a piece: some 0.5 ms where each takes three bytes. */
const PIECE_CHARS = 131_072;

const encoder = new TextEncoder();

/** A long text in UTF-8, encoded with turns for others in between: 10 million Han characters at once take 50 ms. */
export async function encodeLong(text: string): Promise<Uint8Array<ArrayBuffer>> {
  return await inSlices(encodeSteps(text));
}

/** Whether a body is a text that is encoded so. */
export function isLongText(body: unknown): body is string {
  return typeof body === "string" && body.length > LONG_STEP;
}

/** The bytes that `TextEncoder` makes of a text, in steps. */
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
