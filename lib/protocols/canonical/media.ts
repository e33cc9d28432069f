/** Reads and writes images and files as URLs: a `data:` URL contains the bytes, any other URL is a reference. */
import { Buffer } from "node:buffer";
import { GatewayError } from "../../errors.ts";
import { isObject, type Json, type JsonObject } from "../../json/mod.ts";
import type { Media } from "./types.ts";

const DEFAULT_MEDIA_TYPE = "text/plain";
const PERCENT = 0x25;
/** Limit of a media type with its parameters, in characters. */
const MAX_TYPE_LENGTH = 1024;

/**
 * Reads a URL. A `data:` URL in any case and encoding, with any parameters, becomes bytes in base64; any other stays a
 * URL and is never fetched.
 * @throws {SyntaxError} for a `data:` URL without a comma, with an overlong type or with invalid base64
 */
export function readMediaUrl(url: string): Media {
  if (!/^data:/i.test(url)) return { kind: "url", url };
  const comma = url.indexOf(",");
  if (comma < 0) throw new SyntaxError("Expected a comma in the data URL");
  if (comma > MAX_TYPE_LENGTH) throw new SyntaxError(`Expected a media type of at most ${MAX_TYPE_LENGTH} characters`);
  const [type = "", ...parameters] = url.slice("data:".length, comma).split(";").map((part) => part.trim());
  const data = url.slice(comma + 1);
  const mediaType = normalizeMediaType(type === "" ? DEFAULT_MEDIA_TYPE : type);
  const base64 = parameters.some((parameter) => parameter.toLowerCase() === "base64");
  return { kind: "bytes", mediaType, base64: base64 ? readDataBase64(data) : percentDecode(data).toString("base64") };
}

/**
 * Runs a decoder of the client's data.
 * @param param the client's name of the data
 * @throws {GatewayError} `invalid`, if the decoder throws a `SyntaxError`
 */
export function decodeMedia<T>(decode: () => T, param: string): T {
  try {
    return decode();
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
    throw new GatewayError("invalid", `Cannot read ${param}: ${cause.message}`, { param, cause });
  }
}

/** An address inside a vendor-specific part, with the name of its member. */
interface NamedAddress {
  name: string;
  url: string;
}

/** Depth to which parts are searched: the part, its output, and the list in it. */
const ADDRESS_LEVELS = 3;

/** Beginning of sound that must be base64. Longer addresses are opened by no host. */
const MAX_ADDRESS_START = 4_096;

/**
 * Returns the addresses that a vendor may open: members named `…_url`, audio (`data`), which some hosts fetch, and the
 * images (`source`) in a document of the messages protocol. Whatever is not bytes counts, because hosts differ in what
 * they open: some read files of their own disk.
 */
export function addressesIn(value: JsonObject): NamedAddress[] {
  const addresses: NamedAddress[] = [];
  findAddresses(value, ADDRESS_LEVELS, addresses);
  const { source } = value;
  if (isObject(source) && Array.isArray(source.content)) findAddresses(source.content, ADDRESS_LEVELS, addresses);
  return addresses;
}

function findAddresses(value: Json[] | JsonObject, levels: number, addresses: NamedAddress[]): void {
  if (Array.isArray(value)) {
    for (const item of value) if (isObject(item)) findAddresses(item, levels - 1, addresses);
    return;
  }
  for (const name in value) {
    const inner = value[name];
    const url = addressOf(name, inner);
    if (url !== undefined) addresses.push({ name, url });
    else if (name !== "source" && levels > 1 && (isObject(inner) || Array.isArray(inner))) {
      findAddresses(inner, levels - 1, addresses);
    }
  }
}

/** Returns the address in a member; undefined if there is none. The `data` of a `source` is bytes or text. */
function addressOf(name: string, value: Json | undefined): string | undefined {
  const isUrl = name.endsWith("_url");
  const url = (isUrl || name === "source") && isObject(value) ? value.url : value;
  if (typeof url !== "string" || url === "" || /^\s*data:/i.test(url)) return undefined;
  if (name === "data") return /[^A-Za-z0-9+/=_\s-]/.test(url.slice(0, MAX_ADDRESS_START)) ? url : undefined;
  return isUrl || isObject(value) ? url : undefined;
}

/** Returns media as one URL: a `data:` URL for bytes. */
export function writeMediaUrl(media: Media): string {
  return media.kind === "url" ? media.url : `data:${media.mediaType};base64,${media.base64}`;
}

/** Hosts whose URLs Gemini takes for videos. */
const VIDEO_HOST = /^(?!img\.)(?:[^.]+\.)*(?:youtube(?:-nocookie)?\.com|youtu\.be)\.?$/;

/** The first characters of a PDF in base64. */
export const PDF_BASE64 = "JVBERi0";

/** A URL whose path ends like the name of an image file. */
const IMAGE_ENDING = /^[^?#]*\.(png|jpe?g|webp|gif|heic|heif)(?:[?#]|$)/i;

/**
 * Returns the modality of the input, in the catalog's terms; `text` for text files. A YouTube address is a video. Any
 * other URL without a media type counts as an image, unless the client named the file.
 */
export function modalityOf(media: Media, name?: string): "image" | "audio" | "video" | "text" | "file" {
  if (media.kind === "url" && VIDEO_HOST.test(URL.parse(media.url)?.hostname ?? "")) return "video";
  const top = media.mediaType?.split("/")[0];
  if (top === "image" || top === "audio" || top === "video" || top === "text") return top;
  return media.mediaType === undefined && name === undefined ? "image" : "file";
}

/** Returns the image type by the file name in a URL's path; undefined if it is not one of an image. */
export function imageTypeOf(url: string): string | undefined {
  const ending = IMAGE_ENDING.exec(url)?.[1];
  return ending === undefined ? undefined : normalizeMediaType(`image/${ending}`);
}

/** Returns a media type in lower case, with `image/jpeg` for `image/jpg`. */
export function normalizeMediaType(type: string): string {
  const lower = type.toLowerCase();
  return lower === "image/jpg" ? "image/jpeg" : lower;
}

/**
 * Returns base64 in canonical form: no white space, standard alphabet, padded. Checks it without decoding.
 * @throws {SyntaxError} for anything else than base64
 */
export function readBase64(text: string): string {
  if (text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text)) return text;
  const standard = /[\s_-]/.test(text) ? toStandardAlphabet(text) : text;
  const body = standard.replace(/={1,2}$/, "");
  const isPadded = body.length < standard.length;
  if (/[^A-Za-z0-9+/]/.test(body) || body.length % 4 === 1 || (isPadded && standard.length % 4 !== 0)) {
    throw new SyntaxError("Expected base64");
  }
  return body + "=".repeat((4 - body.length % 4) % 4);
}

/** Returns the text of a file; undefined if it is not UTF-8. @param base64 as `readBase64` returns it */
export function decodeTextFile(base64: string): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Buffer.from(base64, "base64"));
  } catch {
    return undefined;
  }
}

// A large body is mostly media, so the functions below go through the bytes once. A regular expression takes seconds if
// every other character changes.

/** Returns base64 without white space, and in the standard alphabet if it is URL-safe. */
function toStandardAlphabet(text: string): string {
  const bytes = Buffer.from(text);
  let length = 0;
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index] as number;
    if (byte === 0x20 || (byte >= 0x09 && byte <= 0x0d)) continue;
    if (byte === 0x2d) bytes[length++] = 0x2b;
    else bytes[length++] = byte === 0x5f ? 0x2f : byte;
  }
  return bytes.toString("latin1", 0, length);
}

/** Returns the base64 of a `data:` URL. It needs no percent-encoding, but some clients encode the whole URL. */
function readDataBase64(data: string): string {
  return readBase64(data.includes("%") ? percentDecode(data).toString() : data);
}

/** Decodes percent-encoded text to bytes. A percent sign that two hexadecimal digits do not follow stays. */
function percentDecode(data: string): Buffer {
  const bytes = Buffer.from(data);
  let length = 0;
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index] as number;
    const escaped = byte === PERCENT ? hexDigit(bytes[index + 1]) * 16 + hexDigit(bytes[index + 2]) : NaN;
    if (!Number.isNaN(escaped)) index += 2;
    bytes[length++] = Number.isNaN(escaped) ? byte : escaped;
  }
  return bytes.subarray(0, length);
}

/** Returns the value of a hexadecimal digit given as a character code, else `NaN`. */
function hexDigit(code = 0): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const letter = code | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : NaN;
}
