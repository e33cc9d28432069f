/** Pictures and files. */
import type { Media } from "../../canonical/types.ts";
import type { JsonObject } from "../../json.ts";

/** Media as a part: bytes inside it, anything else by its address. */
export function writeMedia(media: Media, name?: string): JsonObject {
  const displayName = name === undefined ? {} : { displayName: name };
  if (media.kind === "bytes") {
    return { inlineData: { mimeType: media.mediaType, data: media.base64, ...displayName } };
  }
  const mimeType = media.mediaType === undefined ? {} : { mimeType: media.mediaType };
  return { fileData: { ...mimeType, fileUri: media.url, ...displayName } };
}
