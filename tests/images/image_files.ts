/** Small images for tests, built byte by byte. Their headers are valid; the rest is not read. */
import { Buffer } from "node:buffer";
import { deflateSync } from "node:zlib";

type Bytes = Uint8Array<ArrayBuffer>;

/** Joins byte strings; text is one byte per character. */
export function join(...parts: readonly (string | Uint8Array)[]): Bytes {
  const pieces = parts.map((part) => typeof part === "string" ? latin1(part) : part);
  const bytes = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}

function latin1(text: string): Bytes {
  return Uint8Array.from(text, (char) => char.charCodeAt(0));
}

/** A number in big-endian bytes. */
export function big(value: number, length: number): Bytes {
  return Uint8Array.from({ length }, (_, i) => Math.floor(value / 256 ** (length - 1 - i)) & 0xff);
}

function little(value: number, length: number): Bytes {
  return big(value, length).reverse();
}

/** A chunk of a PNG. */
export function chunk(type: string, data: Uint8Array = new Uint8Array()): Bytes {
  const body = join(type, data);
  return join(big(data.length, 4), body, big(crc32(body), 4));
}

function crc32(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  }
  return (crc ^ 0xffffffff) >>> 0;
}

/** A valid PNG, all gray; chunks may precede its pixels. */
export function png(width: number, height: number, ...extra: Uint8Array[]): Bytes {
  const header = join(big(width, 4), big(height, 4), "\x08\x00\x00\x00\x00");
  const pixels = deflateSync(new Uint8Array((width + 1) * height));
  return join("\x89PNG\r\n\x1a\n", chunk("IHDR", header), ...extra, chunk("IDAT", pixels), chunk("IEND"));
}

/** The head of a PNG, without pixels. */
export function pngHead(width: number, height: number): Bytes {
  return join("\x89PNG\r\n\x1a\n", chunk("IHDR", join(big(width, 4), big(height, 4), "\x08\x00\x00\x00\x00")));
}

/** The head of a JPEG of a size, with segments before its frame. */
export function jpegHead(width: number, height: number, ...segments: Uint8Array[]): Bytes {
  return join("\xff\xd8", ...segments, "\xff\xc0", big(17, 2), "\x08", big(height, 2), big(width, 2), "\x03\xff\xd9");
}

/** A segment of a JPEG. */
export function segment(marker: number, data: Uint8Array): Bytes {
  return join("\xff", big(marker, 1), big(data.length + 2, 2), data);
}

/** EXIF data with an orientation, in either order of bytes, the tag last among others. */
export function exif(orientation: number, order: "little" | "big" = "little"): Bytes {
  const write = order === "little" ? little : big;
  const entry = (tag: number, value: number) =>
    join(write(tag, 2), write(3, 2), write(1, 4), write(value, 2), write(0, 2));
  return join(
    order === "little" ? "II" : "MM",
    write(42, 2),
    write(8, 4),
    write(3, 2),
    entry(0x0100, 7),
    entry(0x0106, 8),
    entry(0x0112, orientation),
    write(0, 4),
  );
}

/** The EXIF segment of a JPEG. */
export function exifSegment(data: Uint8Array): Bytes {
  return segment(0xe1, join("Exif\0\0", data));
}

/** Bytes as base64. */
export function base64Of(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64");
}
