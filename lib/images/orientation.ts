/** Reads the EXIF orientation from the header of an image file. Pixels are not decoded. */

/** Maximum number of segments or chunks that are searched for EXIF data. Real files have a few dozen. */
const MAX_PARTS = 4096;

/** Maximum number of directory entries that are searched. Real files have a few dozen. */
const MAX_ENTRIES = 512;

/** Tag of the orientation in a TIFF directory. */
const ORIENTATION_TAG = 0x0112;
/** TIFF's type of 16-bit unsigned integers. */
const SHORT = 3;

/**
 * Returns the EXIF orientation of a JPEG, PNG or WebP, from 1 (as stored) to 8. Values from 5 to 8 swap width and
 * height. If the data is missing or invalid, it returns 1. Never throws.
 */
export function orientationOf(bytes: Uint8Array<ArrayBuffer>): number {
  const exif = exifOfJpeg(bytes) ?? exifOfPng(bytes) ?? exifOfWebp(bytes);
  const value = exif === undefined ? undefined : readOrientation(exif);
  return value !== undefined && value >= 1 && value <= 8 ? value : 1;
}

/** Returns the TIFF block of a JPEG's first EXIF segment, which precedes the frame. */
function exifOfJpeg(bytes: Uint8Array<ArrayBuffer>): DataView | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (view.byteLength < 4 || view.getUint16(0) !== 0xffd8) return undefined;
  let at = 2;
  for (let parts = 0; parts < MAX_PARTS && at + 4 <= view.byteLength; parts++) {
    if (view.getUint8(at) !== 0xff) return undefined;
    const marker = view.getUint8(at + 1);
    if (marker === 0xff) {
      at++;
      continue;
    }
    // Markers from SOF to COM have a length. A frame or scan ends the search.
    if (marker < 0xc0 || (marker >= 0xd0 && marker <= 0xda) || (marker <= 0xcf && marker !== 0xc4)) return undefined;
    const length = view.getUint16(at + 2);
    if (length < 2) return undefined;
    if (marker === 0xe1 && hasText(view, at + 4, "Exif\0\0")) return viewOf(view, at + 10, at + 2 + length);
    at += 2 + length;
  }
  return undefined;
}

/** Returns the TIFF block of a PNG, which precedes the pixels. */
function exifOfPng(bytes: Uint8Array<ArrayBuffer>): DataView | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (!hasText(view, 0, "\x89PNG\r\n\x1a\n")) return undefined;
  let at = 8;
  for (let parts = 0; parts < MAX_PARTS && at + 8 <= view.byteLength; parts++) {
    const length = view.getUint32(at);
    if (hasText(view, at + 4, "IDAT")) return undefined;
    if (hasText(view, at + 4, "eXIf")) return viewOf(view, at + 8, at + 8 + length);
    at += 12 + length;
  }
  return undefined;
}

/** Returns the TIFF block of a WebP, which follows the pixels. Some writers put a JPEG segment header before it. */
function exifOfWebp(bytes: Uint8Array<ArrayBuffer>): DataView | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (!hasText(view, 0, "RIFF") || !hasText(view, 8, "WEBPVP8X")) return undefined;
  let at = 12;
  for (let parts = 0; parts < MAX_PARTS && at + 8 <= view.byteLength; parts++) {
    const length = view.getUint32(at + 4, true);
    if (hasText(view, at, "EXIF")) {
      return viewOf(view, at + (hasText(view, at + 8, "Exif\0\0") ? 14 : 8), at + 8 + length);
    }
    at += 8 + length + length % 2;
  }
  return undefined;
}

function readOrientation(exif: DataView): number | undefined {
  const little = hasText(exif, 0, "II*\0");
  if (!little && !hasText(exif, 0, "MM\0*") || exif.byteLength < 8) return undefined;
  const directory = exif.getUint32(4, little);
  if (directory + 2 > exif.byteLength) return undefined;
  const entries = Math.min(exif.getUint16(directory, little), MAX_ENTRIES);
  for (let entry = 0; entry < entries; entry++) {
    const at = directory + 2 + entry * 12;
    if (at + 12 > exif.byteLength) return undefined;
    if (exif.getUint16(at, little) !== ORIENTATION_TAG) continue;
    return exif.getUint16(at + 2, little) === SHORT ? exif.getUint16(at + 8, little) : undefined;
  }
  return undefined;
}

/** Returns a view of a range, cut at the end of the file; undefined if it is empty. */
function viewOf(view: DataView<ArrayBuffer>, from: number, to: number): DataView | undefined {
  const end = Math.min(to, view.byteLength);
  return from < end ? new DataView(view.buffer, view.byteOffset + from, end - from) : undefined;
}

/** Returns whether the ASCII text is at the offset. */
function hasText(view: DataView, offset: number, text: string): boolean {
  if (offset + text.length > view.byteLength) return false;
  for (let i = 0; i < text.length; i++) if (view.getUint8(offset + i) !== text.charCodeAt(i)) return false;
  return true;
}
