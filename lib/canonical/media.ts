/** Pictures and files in URLs: a `data:` URL carries the bytes, any other names them. */
import type { Media } from "./types.ts";

const DEFAULT_TYPE = "text/plain";

/**
 * Reads a URL. A `data:` URL becomes bytes, whatever its case, parameters or encoding; every other stays a URL and is
 * never fetched. Base64 loses its white space; percent-encoded data becomes base64.
 * @throws {SyntaxError} on a `data:` URL without a comma or with data that is not base64
 */
export function readMediaUrl(url: string): Media {
  if (!/^data:/i.test(url)) return { kind: "url", url };
  const comma = url.indexOf(",");
  if (comma < 0) throw new SyntaxError("Expected a comma in the data URL");
  const [type = "", ...parameters] = url.slice("data:".length, comma).split(";").map((part) => part.trim());
  const data = url.slice(comma + 1);
  const mediaType = normalizeMediaType(type === "" ? DEFAULT_TYPE : type);
  const base64 = parameters.some((parameter) => parameter.toLowerCase() === "base64");
  return { kind: "bytes", mediaType, base64: base64 ? readBase64(data) : encodeText(data) };
}

/** Writes media as one URL: a `data:` URL for bytes. */
export function writeMediaUrl(media: Media): string {
  return media.kind === "url" ? media.url : `data:${media.mediaType};base64,${media.base64}`;
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
  const compact = /\s/.test(text) ? text.replace(/\s+/g, "") : text;
  const standard = /[-_]/.test(compact) ? compact.replaceAll("-", "+").replaceAll("_", "/") : compact;
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

function encodeText(data: string): string {
  let binary = "";
  for (const byte of new TextEncoder().encode(percentDecode(data))) binary += String.fromCharCode(byte);
  return btoa(binary);
}

function percentDecode(data: string): string {
  try {
    return decodeURIComponent(data);
  } catch {
    throw new SyntaxError("Expected valid percent-encoding in the data URL");
  }
}
