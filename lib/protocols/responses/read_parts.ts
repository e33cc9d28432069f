/** Reads the content parts of input items as blocks. */
import { readCacheMark } from "../canonical/cache_mark.ts";
import { decodeMedia, readBase64, readMediaUrl } from "../canonical/media.ts";
import type { Citation, ContentBlock, Media } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import type { Json, JsonObject } from "../../json/mod.ts";
import type { ClientPermissions } from "../codec.ts";
import { checkCount } from "../fields.ts";
import { sendContent } from "../extras.ts";
import { listOf, objectOf, objectsOf, present, stringOf } from "../members.ts";
import { unknownIn } from "../canonical/unknown_members.ts";

const TEXT_MEMBERS = new Set(["type", "text", "annotations", "cache_control"]);
const REFUSAL_MEMBERS = new Set(["type", "refusal", "cache_control"]);
const IMAGE_MEMBERS = new Set(["type", "image_url", "cache_control"]);
const FILE_MEMBERS = new Set(["type", "file_data", "file_url", "filename", "cache_control"]);

/**
 * Reads content as blocks: a string or parts.
 * @param path path of the content in the request, such as `input[0].content`
 * @param permissions absent: the client may not refer to files at the vendor
 * @throws {GatewayError} `invalid`, for parts that cannot be passed to a model
 */
export function readContent(
  content: Json | undefined,
  path: string,
  permissions: ClientPermissions | undefined,
): ContentBlock[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return objectsOf(content).map((part, index) => {
    const isFile = permissions?.vendorState === true && stringOf(part.file_id) !== undefined;
    return isFile
      ? { type: "vendor_specific", from: "responses", value: part }
      : readPart(part, `${path}[${index}]`, permissions);
  });
}

/** Checks the number of images. @throws {GatewayError} `invalid`, if there are too many */
export function checkImages(input: Json | undefined): void {
  const images = objectsOf(input)
    .flatMap((item) => [...listOf(item.content), ...listOf(item.output)])
    .filter((part) => objectOf(part)?.type === "input_image");
  checkCount("images", images.length, "input");
}

function readPart(part: JsonObject, path: string, permissions: ClientPermissions | undefined): ContentBlock {
  const cache = readCacheMark(part);
  switch (part.type) {
    case "input_text":
    case "output_text":
    case "text": {
      const citations = objectsOf(part.annotations).map((value): Citation => ({ from: "responses", value }));
      return {
        type: "text",
        text: stringOf(part.text) ?? "",
        ...(citations.length > 0 && { citations }),
        ...cache,
        ...unknownIn("responses", part, TEXT_MEMBERS),
      };
    }
    case "refusal":
      return {
        type: "refusal",
        text: stringOf(part.refusal) ?? "",
        ...cache,
        ...unknownIn("responses", part, REFUSAL_MEMBERS),
      };
    case "input_image":
      return { type: "media", media: readImage(part, path), ...cache, ...unknownIn("responses", part, IMAGE_MEMBERS) };
    case "input_file": {
      const media = readFile(part, path);
      const name = stringOf(part.filename) ?? (media.kind === "url" ? fileName(media.url) : undefined);
      return {
        type: "media",
        media,
        ...present({ name }),
        ...cache,
        ...unknownIn("responses", part, FILE_MEMBERS),
      };
    }
    case "input_audio":
      permissions?.checkItem(part, path);
      return { type: "vendor_specific", from: "responses", value: part };
    default:
      throw new GatewayError("invalid", `Cannot read content part type ${JSON.stringify(part.type)}`, {
        param: `${path}.type`,
      });
  }
}

function readImage(part: JsonObject, path: string): Media {
  const url = stringOf(part.image_url);
  if (url === undefined || part.file_id) throw missingContent(part, { path, wanted: "image_url" });
  return decodeMedia(() => readMediaUrl(url), `${path}.image_url`);
}

function readFile(part: JsonObject, path: string): Media {
  const data = stringOf(part.file_data);
  const url = stringOf(part.file_url);
  if (part.file_id) throw missingContent(part, { path, wanted: "file_data or file_url" });
  if (data !== undefined) {
    const decode = () => /^data:/i.test(data) ? readMediaUrl(data) : readBase64File(data, part);
    return decodeMedia(decode, `${path}.file_data`);
  }
  if (url === undefined) throw missingContent(part, { path, wanted: "file_data or file_url" });
  return decodeMedia(() => readMediaUrl(url), `${path}.file_url`);
}

/** Reads base64 that is not in a data URL, as some clients send it. Then only the file name shows the media type. */
function readBase64File(data: string, part: JsonObject): Media {
  const isPdf = /\.pdf$/i.test(stringOf(part.filename) ?? "");
  return { kind: "bytes", base64: readBase64(data), mediaType: isPdf ? "application/pdf" : "application/octet-stream" };
}

/** Returns the file name in a URL. It is never empty, because a URL without media type and name counts as an image. */
export function fileName(url: string): string {
  return url.replace(/[?#].*$/s, "").split("/").at(-1) || "file";
}

function missingContent(part: JsonObject, { path, wanted }: { path: string; wanted: string }): GatewayError {
  if ((part.file_id ?? null) === null) return new GatewayError("invalid", `Expected ${wanted}`, { param: path });
  return new GatewayError("invalid", `Cannot use a file id: ${sendContent(wanted)}`, { param: `${path}.file_id` });
}
