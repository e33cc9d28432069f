/** Where text stops being UTF-8. Decoders only say that it does. */

/** Offset of the first byte that no UTF-8 text has there; the length of `bytes` where there is none. */
export function firstBadByte(bytes: Uint8Array): number {
  let at = 0;
  while (at < bytes.length) {
    const size = sequenceLength(bytes, at);
    if (size === 0) return at;
    at += size;
  }
  return bytes.length;
}

/** Length of the well-formed sequence that starts here, by table 3-7 of the Unicode Standard; 0 where there is none. */
function sequenceLength(bytes: Uint8Array, at: number): number {
  const lead = bytes[at] ?? 0;
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  const size = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  const low = lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80;
  const high = lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf;
  const second = bytes[at + 1] ?? 0;
  if (second < low || second > high) return 0;
  for (let index = at + 2; index < at + size; index++) {
    const byte = bytes[index] ?? 0;
    if (byte < 0x80 || byte > 0xbf) return 0;
  }
  return size;
}
