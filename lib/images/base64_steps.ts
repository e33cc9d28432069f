/** Base64 of a file, in steps between which others have their turn. */
import { Buffer } from "node:buffer";

/** Bytes in one step; a multiple of three. */
const STEP_BYTES = 192 * 1024;

/** Writes base64. For `inSlices()`. */
export function* base64Steps(bytes: Uint8Array): Generator<void, string> {
  const out: string[] = [];
  for (let at = 0; at < bytes.length; at += STEP_BYTES) {
    const part = bytes.subarray(at, at + STEP_BYTES);
    out.push(Buffer.from(part.buffer, part.byteOffset, part.length).toString("base64"));
    yield;
  }
  return out.join("");
}
