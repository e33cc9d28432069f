/** Request bodies in pieces: most of one is as its sender wrote it, and need not be made a text and bytes again. */
import { Buffer } from "node:buffer";
import { WovenJson } from "../json/woven.ts";

/** A part of a body: bytes, a text that goes out in UTF-8, or JSON that is put together where it goes. */
export type BodyPiece = string | Uint8Array<ArrayBuffer> | WovenJson;

/** A body that is known as a whole, and may be sent more than once. */
export type WholeBody = string | readonly BodyPiece[];

const encoder = new TextEncoder();

/** Whether a body is in pieces. */
export function isPieces(body: WholeBody | Uint8Array | ReadableStream): body is readonly BodyPiece[] {
  return Array.isArray(body);
}

/** Bytes that the pieces have at least: a text has one for each code unit. */
export function leastBytes(pieces: readonly BodyPiece[]): number {
  let bytes = 0;
  for (const piece of pieces) bytes += piece.length;
  return bytes;
}

/** Bytes that the pieces have at most: a text has three for each code unit. */
export function mostBytes(pieces: readonly BodyPiece[]): number {
  let bytes = 0;
  for (const piece of pieces) bytes += typeof piece === "string" ? piece.length * 3 : piece.length;
  return bytes;
}

/** Writes the pieces one behind the other, from `start` on. Returns where they end; `undefined` where there is no room. */
export function writePieces(
  pieces: readonly BodyPiece[],
  { into, start }: { into: Uint8Array; start: number },
): number | undefined {
  let end = start;
  for (const piece of pieces) {
    if (typeof piece === "string") {
      const { read, written } = encoder.encodeInto(piece, into.subarray(end));
      if (read < piece.length) return undefined;
      end += written;
    } else if (piece instanceof WovenJson) {
      const behind = piece.write(into, end);
      if (behind === undefined) return undefined;
      end = behind;
    } else {
      if (end + piece.length > into.length) return undefined;
      into.set(piece, end);
      end += piece.length;
    }
  }
  return end;
}

/** The pieces as one. */
export function joinPieces(pieces: readonly BodyPiece[]): Uint8Array<ArrayBuffer> {
  let length = 0;
  for (const piece of pieces) length += typeof piece === "string" ? Buffer.byteLength(piece) : piece.length;
  const bytes = new Uint8Array(length);
  writePieces(pieces, { into: bytes, start: 0 });
  return bytes;
}
