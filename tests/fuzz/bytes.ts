/** Bytes that went wrong. */
import type { Random } from "../support/random.ts";

/** Cuts, repeats or overwrites bytes. */
export function changeBytes(bytes: Uint8Array, random: Random): Uint8Array {
  if (bytes.length === 0) return bytes;
  const at = random.below(bytes.length);
  const change = random.next();
  if (change < 0.3) return bytes.slice(0, at);
  if (change < 0.5) return joined(bytes.subarray(0, at), bytes.subarray(at >> 1));
  if (change < 0.6) return joined(bytes.subarray(0, at), Uint8Array.of(0xef, 0xbb, 0xbf), bytes.subarray(at));
  const changed = bytes.slice();
  for (let times = 1 + random.below(3); times > 0; times--) {
    changed[random.below(changed.length)] = random.below(256);
  }
  return changed;
}

/** Several one after the other. */
export function joined(...parts: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((size, { length }) => size + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** Text with a byte for each character. */
export function latin1(text: string): Uint8Array {
  return Uint8Array.from(text, (char) => char.charCodeAt(0));
}

/** A body in chunks, some with wrong sizes. */
export function inChunks(bytes: Uint8Array, random: Random): Uint8Array {
  const parts: Uint8Array[] = [];
  for (let at = 0; at < bytes.length;) {
    const size = Math.min(bytes.length - at, 1 + random.below(2_000));
    const reported = random.chance(0.05) ? size + random.below(5) - 2 : size;
    const odd = random.chance(0.03) ? ["zz", "-1", "0x5", " 5", "", "ffffffffffffffff"][random.below(6)] : undefined;
    parts.push(latin1(`${odd ?? reported.toString(16)}\r\n`), bytes.subarray(at, at + size), latin1("\r\n"));
    at += size;
  }
  if (random.chance(0.95)) parts.push(latin1("0\r\n\r\n"));
  return joined(...parts);
}
