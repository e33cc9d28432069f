/** Reads the size of the contents of a ZIP archive, such as a .docx or .xlsx, from its directory. */
import { Buffer } from "node:buffer";
import type { Media } from "../protocols/canonical/types.ts";
import { base64Bytes } from "./prompt_parts.ts";

/** The first characters of a ZIP archive in base64. */
const ZIP_BASE64 = "UEsDB";
/** Digits of base64 at the end of an archive that are read: a directory of 5,000 files is shorter. Divisible by 4. */
const TAIL_DIGITS = 1_048_576;
/** Signature and length of the record at the end of an archive, and of a file's record in the directory. */
const END = "PK\x05\x06", END_BYTES = 22;
const FILE_SIGNATURE = 0x02014b50, FILE_BYTES = 46;

/**
 * Returns the size of the unpacked files in bytes; infinite if the directory cannot be read. Undefined for media that
 * are not an archive. Readers unpack no more of a file than its directory states.
 */
export function unzippedBytes(media: Media): number | undefined {
  if (media.kind === "url" || !media.base64.startsWith(ZIP_BASE64)) return undefined;
  const tail = Buffer.from(media.base64.slice(-TAIL_DIGITS), "base64");
  const end = tail.lastIndexOf(END, undefined, "latin1");
  if (end < 0 || end + END_BYTES > tail.length) return Infinity;
  // Some readers find the directory directly before its end record, others by its offset from the start.
  let at = end - tail.readUInt32LE(end + 12), bytes = 0;
  if (tail.readUInt32LE(end + 16) !== base64Bytes(media.base64) - tail.length + at) return Infinity;
  for (let files = tail.readUInt16LE(end + 10); files > 0; files--) {
    if (at < 0 || at + FILE_BYTES > end || tail.readUInt32LE(at) !== FILE_SIGNATURE) return Infinity;
    bytes += tail.readUInt32LE(at + 24);
    at += FILE_BYTES + tail.readUInt16LE(at + 28) + tail.readUInt16LE(at + 30) + tail.readUInt16LE(at + 32);
  }
  return bytes;
}
