/** Images to upload: as large as their pixels, since nothing in them is compressed. */
import { crc32, deflateSync } from "node:zlib";

/** A PNG of noise. */
export function noisePng({ width, height }: { width: number; height: number }): Uint8Array<ArrayBuffer> {
  const row = width * 3 + 1;
  const pixels = new Uint8Array(row * height);
  let seed = 1;
  for (let at = 0; at < pixels.length; at++) {
    seed = Math.imul(seed, 1_103_515_245) + 12_345 >>> 0;
    // The first byte of each row is its filter: none.
    pixels[at] = at % row === 0 ? 0 : seed >>> 24;
  }
  const header = new DataView(new ArrayBuffer(13));
  header.setUint32(0, width);
  header.setUint32(4, height);
  // 8 bits of each of red, green and blue.
  header.setUint8(8, 8);
  header.setUint8(9, 2);
  const parts = [
    Uint8Array.of(137, 80, 78, 71, 13, 10, 26, 10),
    chunk("IHDR", new Uint8Array(header.buffer)),
    chunk("IDAT", new Uint8Array(deflateSync(pixels, { level: 0 }))),
    chunk("IEND", new Uint8Array()),
  ];
  const png = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    png.set(part, at);
    at += part.length;
  }
  return png;
}

function chunk(type: string, data: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(data.length + 12);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, data.length);
  bytes.set(new TextEncoder().encode(type), 4);
  bytes.set(data, 8);
  view.setUint32(data.length + 8, crc32(bytes.subarray(4, data.length + 8)));
  return bytes;
}
