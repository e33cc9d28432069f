/** Reads the content of chat messages, which is a string or an array of parts. */
import { readCacheMark } from "../canonical/cache_mark.ts";
import { decodeMedia, readMediaUrl } from "../canonical/media.ts";
import type { ContentBlock } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import type { Json, JsonObject } from "../../json/mod.ts";
import type { ClientPermissions } from "../codec.ts";
import { sendContent } from "../extras.ts";
import { objectOf, objectsOf, present, stringOf } from "../members.ts";
import { unknownIn } from "../canonical/unknown_members.ts";

const PART_MEMBERS = new Set(["type", "cache_control"]);
const TEXT_MEMBERS = new Set(["type", "text", "cache_control"]);
const REFUSAL_MEMBERS = new Set(["type", "refusal", "cache_control"]);
const IMAGE_MEMBERS = { image_url: new Set(["url"]) };
const FILE_MEMBERS = { file: new Set(["filename", "file_data", "file_id"]) };

/**
 * Reads content as blocks. An empty string has none.
 * @param path path of the content in the request, such as `messages[0].content`
 * @param permissions absent: the client may not refer to files at the vendor
 * @throws {GatewayError} `invalid`, for images and files that cannot be read
 */
export function readContent(
  content: Json | undefined,
  path: string,
  permissions: ClientPermissions | undefined,
): ContentBlock[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  return objectsOf(content).map((part, index) => readPart(part, `${path}[${index}]`, permissions));
}

function readPart(part: JsonObject, path: string, permissions: ClientPermissions | undefined): ContentBlock {
  switch (part.type) {
    case "text":
      return {
        type: "text",
        text: stringOf(part.text) ?? "",
        ...readCacheMark(part),
        ...unknownIn("chat", part, TEXT_MEMBERS),
      };
    case "refusal":
      return {
        type: "refusal",
        text: stringOf(part.refusal) ?? "",
        ...readCacheMark(part),
        ...unknownIn("chat", part, REFUSAL_MEMBERS),
      };
    case "image_url":
      return {
        type: "media",
        media: decodeMedia(() => readMediaUrl(stringOf(objectOf(part.image_url)?.url) ?? ""), `${path}.image_url.url`),
        ...readCacheMark(part),
        ...unknownIn("chat", part, PART_MEMBERS, { inner: IMAGE_MEMBERS }),
      };
    case "file":
      return readFile(part, `${path}.file`, permissions);
    default:
      permissions?.checkItem(part, path);
      return { type: "vendor_specific", from: "chat", value: part, ...readCacheMark(part) };
  }
}

function readFile(part: JsonObject, path: string, permissions: ClientPermissions | undefined): ContentBlock {
  const file = objectOf(part.file) ?? {};
  const data = stringOf(file.file_data);
  if (stringOf(file.file_id) !== undefined) {
    if (permissions?.vendorState === true) {
      return { type: "vendor_specific", from: "chat", value: part, ...readCacheMark(part) };
    }
    throw new GatewayError("invalid", `Cannot use a file id: ${sendContent("file_data")}`, {
      param: `${path}.file_id`,
    });
  }
  if (data === undefined) {
    throw new GatewayError("invalid", `Missing required parameter: ${path}.file_data`, {
      param: `${path}.file_data`,
      code: "missing_required_parameter",
    });
  }
  if (!/^(?:data|https?):/i.test(data)) {
    throw new GatewayError("invalid", "Cannot read the file: expected a data: URL with a media type", {
      param: `${path}.file_data`,
    });
  }
  return {
    type: "media",
    media: decodeMedia(() => readMediaUrl(data), `${path}.file_data`),
    ...present({ name: stringOf(file.filename) }),
    ...readCacheMark(part),
    ...unknownIn("chat", part, PART_MEMBERS, { inner: FILE_MEMBERS }),
  };
}
