/** Encodes files as base64 in slices, so that large files do not block the event loop. */
import { Buffer } from "node:buffer";

/** Bytes per slice; a multiple of three, so that only the last one is padded. */
const STEP_BYTES = 192 * 1024;

/** Encodes bytes as base64, in steps for `runSliced`. */
export function* base64Steps(bytes: Uint8Array): Generator<void, string> {
  const out: string[] = [];
  for (let start = 0; start < bytes.length; start += STEP_BYTES) {
    const part = bytes.subarray(start, start + STEP_BYTES);
    out.push(Buffer.from(part.buffer, part.byteOffset, part.length).toString("base64"));
    yield;
  }
  return out.join("");
}
