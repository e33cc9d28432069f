/** Base64 of a file in slices, so that large files do not block the event loop. */
import { Buffer } from "node:buffer";

/** Bytes per slice; a multiple of three, so that only the last one is padded. */
const STEP_BYTES = 192 * 1024;

/** Encodes bytes as base64 and yields after each slice. */
export function* base64Steps(bytes: Uint8Array): Generator<void, string> {
  const out: string[] = [];
  for (let at = 0; at < bytes.length; at += STEP_BYTES) {
    const part = bytes.subarray(at, at + STEP_BYTES);
    out.push(Buffer.from(part.buffer, part.byteOffset, part.length).toString("base64"));
    yield;
  }
  return out.join("");
}
