/** Images and files in URLs: a `data:` URL carries the bytes, any other names them. */
import { Buffer } from "node:buffer";
import type { Media } from "./types.ts";

const DEFAULT_TYPE = "text/plain";
const PERCENT = 0x25;
/** Longest type with its parameters, in characters. */
const LONGEST_TYPE = 1024;

/**
 * Reads a URL. A `data:` URL becomes bytes, whatever its case, parameters or encoding; every other stays a URL and is
 * never fetched. Base64 loses its white space; percent-encoded data becomes base64.
 * @throws {SyntaxError} on a `data:` URL without a comma, with an endless type or with data that is not base64
 */
export function readMediaUrl(url: string): Media {
  if (!/^data:/i.test(url)) return { kind: "url", url };
  const comma = url.indexOf(",");
  if (comma < 0) throw new SyntaxError("Expected a comma in the data URL");
  if (comma > LONGEST_TYPE) throw new SyntaxError(`Expected a media type of at most ${LONGEST_TYPE} characters`);
  const [type = "", ...parameters] = url.slice("data:".length, comma).split(";").map((part) => part.trim());
  const data = url.slice(comma + 1);
  const mediaType = normalizeMediaType(type === "" ? DEFAULT_TYPE : type);
  const base64 = parameters.some((parameter) => parameter.toLowerCase() === "base64");
  return { kind: "bytes", mediaType, base64: base64 ? readDataBase64(data) : encodeBytes(percentDecode(data)) };
}

/** Writes media as one URL: a `data:` URL for bytes. */
export function writeMediaUrl(media: Media): string {
  return media.kind === "url" ? media.url : `data:${media.mediaType};base64,${media.base64}`;
}

/** Hosts at which Gemini takes a URL for a video, whatever else the request says of it. */
const VIDEO_HOST = /^(?!img\.)(?:[^.]+\.)*(?:youtube(?:-nocookie)?\.com|youtu\.be)\.?$/;

/** The type of an image, at the end of a URL's path. */
const IMAGE_ENDING = /^[^?#]*\.(png|jpe?g|webp|gif|heic|heif)(?:[?#]|$)/i;

/**
 * The kind of input that media is, in the catalog's words; `text` for plain text and its kin. An address at YouTube is a
 * video. Any other URL that tells no type is taken for an image, unless it has a file name.
 */
export function modalityOf(media: Media, name?: string): "image" | "audio" | "video" | "text" | "file" {
  if (media.kind === "url" && VIDEO_HOST.test(URL.parse(media.url)?.hostname ?? "")) return "video";
  const top = media.mediaType?.split("/")[0];
  if (top === "image" || top === "audio" || top === "video" || top === "text") return top;
  return media.mediaType === undefined && name === undefined ? "image" : "file";
}

/** The type of the image that a URL's path names; undefined where it names none. */
export function imageTypeOf(url: string): string | undefined {
  const ending = IMAGE_ENDING.exec(url)?.[1];
  return ending === undefined ? undefined : normalizeMediaType(`image/${ending}`);
}

/** The usual name of a media type: lower case, `image/jpeg` for `image/jpg`. */
export function normalizeMediaType(type: string): string {
  const lower = type.toLowerCase();
  return lower === "image/jpg" ? "image/jpeg" : lower;
}

/**
 * Base64 in its one canonical spelling: no white space, standard alphabet, padded. Checked without decoding.
 * @throws {SyntaxError} on anything that is not base64
 */
export function readBase64(text: string): string {
  const standard = /[\s_-]/.test(text) ? respell(text) : text;
  const end = standard.endsWith("==")
    ? standard.length - 2
    : standard.endsWith("=")
    ? standard.length - 1
    : standard.length;
  const body = end === standard.length ? standard : standard.slice(0, end);
  if (/[^A-Za-z0-9+/]/.test(body) || body.length % 4 === 1 || (end < standard.length && standard.length % 4 !== 0)) {
    throw new SyntaxError("Expected base64");
  }
  return body + "=".repeat((4 - body.length % 4) % 4);
}

// Media are most of what a large body holds, and it is read while everybody else waits: what follows goes through the
// bytes once. Replacing by pattern takes seconds where every other character is one to be replaced.

/** Base64 without white space, in the standard alphabet. */
function respell(text: string): string {
  const bytes = new TextEncoder().encode(text);
  let length = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    if (byte === 0x20 || (byte >= 0x09 && byte <= 0x0d)) continue;
    bytes[length++] = byte === 0x2d ? 0x2b : byte === 0x5f ? 0x2f : byte;
  }
  return new TextDecoder().decode(bytes.subarray(0, length));
}

/** Base64 needs no percent-encoding, but some clients encode the whole URL. */
function readDataBase64(data: string): string {
  return readBase64(data.includes("%") ? new TextDecoder().decode(percentDecode(data)) : data);
}

function encodeBytes(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}

/** The bytes of percent-encoded text. A percent sign without two hexadecimal digits is itself. */
function percentDecode(data: string): Uint8Array {
  const bytes = new TextEncoder().encode(data);
  let length = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    const escaped = byte === PERCENT ? hexDigit(bytes[at + 1]) * 16 + hexDigit(bytes[at + 2]) : NaN;
    if (!Number.isNaN(escaped)) at += 2;
    bytes[length++] = Number.isNaN(escaped) ? byte : escaped;
  }
  return bytes.subarray(0, length);
}

/** The value of a hexadecimal digit, given as its character's code; `NaN` for anything else. */
function hexDigit(code = 0): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const letter = code | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : NaN;
}
