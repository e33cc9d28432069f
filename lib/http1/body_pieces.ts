/** Request bodies in pieces. Most of a relayed body is sent as the client wrote it, without decoding and encoding it again. */
import { Buffer } from "node:buffer";

/** A piece that writes itself into the buffer it is sent from. */
export interface LazyPiece {
  /** In bytes. */
  readonly length: number;
  /** Writes the piece from `start` on. Returns where it ends; `undefined` where there is no room. */
  write(into: Uint8Array, start: number): number | undefined;
}

/** A piece of a body: bytes, a text that is sent in UTF-8, or a piece that writes itself. */
export type BodyPiece = string | Uint8Array<ArrayBuffer> | LazyPiece;

/** A body that is known as a whole, and may be sent more than once. */
export type WholeBody = string | readonly BodyPiece[];

const encoder = new TextEncoder();

/** Lower bound of the pieces' length in bytes: a text has at least one per code unit. */
export function leastBytes(pieces: readonly BodyPiece[]): number {
  let bytes = 0;
  for (const piece of pieces) bytes += piece.length;
  return bytes;
}

/** Upper bound of the pieces' length in bytes: a text has at most three per code unit. */
export function mostBytes(pieces: readonly BodyPiece[]): number {
  let bytes = 0;
  for (const piece of pieces) bytes += typeof piece === "string" ? piece.length * 3 : piece.length;
  return bytes;
}

/** Writes the pieces one after the other, from `start`. Returns where they end; `undefined` where there is no room. */
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
    } else if (piece instanceof Uint8Array) {
      if (end + piece.length > into.length) return undefined;
      into.set(piece, end);
      end += piece.length;
    } else {
      const pieceEnd = piece.write(into, end);
      if (pieceEnd === undefined) return undefined;
      end = pieceEnd;
    }
  }
  return end;
}

/** Joins the pieces. */
export function joinPieces(pieces: readonly BodyPiece[]): Uint8Array<ArrayBuffer> {
  let length = 0;
  for (const piece of pieces) length += typeof piece === "string" ? Buffer.byteLength(piece) : piece.length;
  const bytes = new Uint8Array(length);
  writePieces(pieces, { into: bytes, start: 0 });
  return bytes;
}
