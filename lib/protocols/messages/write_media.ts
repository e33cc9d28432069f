/** Writes the images and files of a messages request. */
import { decodeTextFile, modalityOf, normalizeMediaType, PDF_BASE64 } from "../canonical/media.ts";
import type { ContentBlockOf, Media } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import type { JsonObject } from "../../json/mod.ts";

type Bytes = Extract<Media, { kind: "bytes" }>;

const PDF = "application/pdf";
const IMAGE_TYPES: readonly string[] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/** Text files whose type does not begin with `text/`. */
const TEXT_TYPE = /^(?:text\/.*|application\/(?:.*\+)?(?:json|xml|yaml|x-yaml|toml|javascript|sql|x-ndjson|x-sh))$/;

/** The first characters of files in base64, by media type. */
const FILE_SIGNATURES: readonly [beginning: RegExp, type: string][] = [
  [/^iVBORw0KGg/, "image/png"],
  [/^\/9j\//, "image/jpeg"],
  [/^R0lGOD[dl]h/, "image/gif"],
  // "RIFF", four bytes of length, "WEBP".
  [/^UklGR.{6}XRUJQ/, "image/webp"],
  [new RegExp(`^${PDF_BASE64}`), PDF],
];

/**
 * Writes media as an image or a document.
 * @throws {GatewayError} `invalid`, for types that the protocol does not support
 */
export function writeMedia({ media, name }: ContentBlockOf<"media">): JsonObject {
  return media.kind === "url" ? writeUrl(media, name) : writeBytes(media, name);
}

/** Returns the text of a text file; undefined for other files. @throws {GatewayError} `invalid`, if it is not UTF-8 */
export function mediaText({ media }: ContentBlockOf<"media">): string | undefined {
  return media.kind === "bytes" && TEXT_TYPE.test(media.mediaType) ? decodeText(media) : undefined;
}

/** Writes media at a URL. In this protocol the document at a URL is a PDF. */
function writeUrl(media: Extract<Media, { kind: "url" }>, name: string | undefined): JsonObject {
  const source = { type: "url", url: media.url };
  if (modalityOf(media, name) === "image") return { type: "image", source };
  if (media.mediaType === undefined || media.mediaType === PDF) return document(source, name);
  throw unsupported(`a URL of type "${media.mediaType}"`);
}

function writeBytes(media: Bytes, name: string | undefined): JsonObject {
  const { base64 } = media;
  const type = typeOf(media);
  if (IMAGE_TYPES.includes(type)) return { type: "image", source: { type: "base64", media_type: type, data: base64 } };
  if (type === PDF) return document({ type: "base64", media_type: PDF, data: base64 }, name);
  if (TEXT_TYPE.test(type)) {
    return document({ type: "text", media_type: "text/plain", data: decodeText(media) }, name);
  }
  throw unsupported(`media of type "${type}"`);
}

function document(source: JsonObject, name: string | undefined): JsonObject {
  return { type: "document", source, ...(name !== undefined && { title: name }) };
}

/** Returns the type of the bytes. The vendor refuses a wrong type, so the detected type precedes the declared one. */
function typeOf({ base64, mediaType }: Bytes): string {
  const declared = normalizeMediaType(mediaType);
  if (TEXT_TYPE.test(declared)) return declared;
  return FILE_SIGNATURES.find(([beginning]) => beginning.test(base64))?.[1] ?? declared;
}

function decodeText({ base64, mediaType }: Bytes): string {
  const text = decodeTextFile(base64);
  if (text !== undefined) return text;
  throw new GatewayError("invalid", `Cannot send a file of type "${mediaType}": its text is not UTF-8`);
}

function unsupported(what: string): GatewayError {
  return new GatewayError(
    "invalid",
    `Cannot send ${what} to this model: it accepts JPEG, PNG, GIF and WebP images, PDF and text`,
  );
}
