/** Reads the width and height of an image from its header, without decoding it. */
import type { CharCodes } from "../json/mod.ts";

/** Size of an image in pixels, before any rotation by its metadata. */
export interface ImageSize {
  width: number;
  height: number;
  type: "png" | "jpeg" | "gif" | "webp";
}

/** Maximum number of JPEG markers and fill bytes that are read in search of the size. Real files have a few dozen. */
const MAX_MARKERS = 4096;

/** Returns the byte at an offset; -1 past the end, or if the byte cannot be decoded. */
type ByteAt = (offset: number) => number;

/**
 * Reads the size of a PNG, JPEG, GIF or WebP image. Returns undefined for any other data and for an incomplete header;
 * never throws.
 */
export function imageSize(bytes: Uint8Array): ImageSize | undefined {
  return readSize((offset) => bytes[offset] ?? -1);
}

/**
 * Reads the size of an image in base64 (standard alphabet, padded, no white space). Returns undefined as `imageSize`
 * does, and if a character of the header is not base64. Decodes only the bytes that it reads.
 */
export function imageSizeBase64(base64: CharCodes): ImageSize | undefined {
  return readSize((offset) => {
    const group = Math.floor(offset / 3) * 4;
    const byteInGroup = offset % 3;
    const high = sextet(base64.charCodeAt(group + byteInGroup));
    const low = sextet(base64.charCodeAt(group + byteInGroup + 1));
    if (high < 0 || low < 0) return -1;
    return (high << (2 + 2 * byteInGroup) | low >> (4 - 2 * byteInGroup)) & 0xff;
  });
}

/**
 * Returns the value of a base64 digit by its character code; -1 for any other character, and for NaN past the end of a
 * string.
 */
function sextet(code: number): number {
  if (code >= 0x41 && code <= 0x5a) return code - 0x41;
  if (code >= 0x61 && code <= 0x7a) return code - 0x61 + 26;
  if (code >= 0x30 && code <= 0x39) return code - 0x30 + 52;
  if (code === 0x2b) return 62;
  return code === 0x2f ? 63 : -1;
}

function readSize(at: ByteAt): ImageSize | undefined {
  const size = readPng(at) ?? readJpeg(at) ?? readGif(at) ?? readWebp(at);
  // Numbers past the end are NaN.
  if (size === undefined || !Number.isInteger(size.width) || !Number.isInteger(size.height)) return undefined;
  return size.width > 0 && size.height > 0 ? size : undefined;
}

/** Returns whether the ASCII text is at the offset. */
function hasText(at: ByteAt, offset: number, text: string): boolean {
  for (let i = 0; i < text.length; i++) if (at(offset + i) !== text.charCodeAt(i)) return false;
  return true;
}

/** Returns the unsigned number in `length` bytes, most significant byte first; NaN past the end. */
function readBigEndian(at: ByteAt, offset: number, length: number): number {
  let value = 0;
  for (let i = 0; i < length; i++) {
    const byte = at(offset + i);
    if (byte < 0) return NaN;
    value = value * 256 + byte;
  }
  return value;
}

/** Returns the unsigned number in `length` bytes, least significant byte first; NaN past the end. */
function readLittleEndian(at: ByteAt, offset: number, length: number): number {
  let value = 0;
  for (let i = length - 1; i >= 0; i--) {
    const byte = at(offset + i);
    if (byte < 0) return NaN;
    value = value * 256 + byte;
  }
  return value;
}

function readPng(at: ByteAt): ImageSize | undefined {
  if (!hasText(at, 0, "\x89PNG\r\n\x1a\n") || readBigEndian(at, 8, 4) !== 13 || !hasText(at, 12, "IHDR")) {
    return undefined;
  }
  const width = readBigEndian(at, 16, 4);
  const height = readBigEndian(at, 20, 4);
  // PNG limits both sides to 31 bits.
  return width < 2 ** 31 && height < 2 ** 31 ? { type: "png", width, height } : undefined;
}

function readGif(at: ByteAt): ImageSize | undefined {
  if (!hasText(at, 0, "GIF87a") && !hasText(at, 0, "GIF89a")) return undefined;
  return { type: "gif", width: readLittleEndian(at, 6, 2), height: readLittleEndian(at, 8, 2) };
}

/** Walks through the segments to the frame header, which may be far into the file, after profiles and previews. */
function readJpeg(at: ByteAt): ImageSize | undefined {
  if (at(0) !== 0xff || at(1) !== 0xd8) return undefined;
  let offset = 2;
  for (let markers = 0; markers < MAX_MARKERS; markers++) {
    if (at(offset) !== 0xff) return undefined;
    const marker = at(offset + 1);
    if (marker === 0xff) {
      offset++;
      continue;
    }
    if (marker === 0x01 || (marker >= 0xd0 && marker <= 0xd7)) {
      offset += 2;
      continue;
    }
    // The marker 00 is invalid, and so is a start, an end or a scan before the frame header.
    if (marker < 0xc0 || marker === 0xd8 || marker === 0xd9 || marker === 0xda) return undefined;
    const length = readBigEndian(at, offset + 2, 2);
    if (marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc) {
      if (!(length >= 8)) return undefined;
      return { type: "jpeg", height: readBigEndian(at, offset + 5, 2), width: readBigEndian(at, offset + 7, 2) };
    }
    if (!(length >= 2)) return undefined;
    offset += 2 + length;
  }
  return undefined;
}

function readWebp(at: ByteAt): ImageSize | undefined {
  if (!hasText(at, 0, "RIFF") || !hasText(at, 8, "WEBP")) return undefined;
  if (hasText(at, 12, "VP8X")) {
    return { type: "webp", width: readLittleEndian(at, 24, 3) + 1, height: readLittleEndian(at, 27, 3) + 1 };
  }
  if (hasText(at, 12, "VP8L")) {
    const bits = readLittleEndian(at, 21, 4);
    if (at(20) !== 0x2f || Number.isNaN(bits)) return undefined;
    return { type: "webp", width: (bits & 0x3fff) + 1, height: (bits >>> 14 & 0x3fff) + 1 };
  }
  // In VP8, the lowest bit of a key frame's tag is 0, and a start code follows the tag.
  if (!hasText(at, 12, "VP8 ") || (at(20) & 1) !== 0 || !hasText(at, 23, "\x9d\x01\x2a")) return undefined;
  const width = readLittleEndian(at, 26, 2);
  const height = readLittleEndian(at, 28, 2);
  if (Number.isNaN(width) || Number.isNaN(height)) return undefined;
  // The upper two bits of both numbers are a scaling hint for display.
  return { type: "webp", width: width & 0x3fff, height: height & 0x3fff };
}
