/** Pictures and files. */
import { imageTypeOf } from "../canonical/media.ts";
import type { Media } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";

/**
 * Media as a part: bytes inside it, anything else by its address. Where an address comes without a type, the vendor finds
 * out for itself what is there.
 */
export function writeMedia(media: Media, name?: string): JsonObject {
  const displayName = name === undefined ? {} : { displayName: name };
  if (media.kind === "bytes") {
    return { inlineData: { mimeType: media.mediaType, data: media.base64, ...displayName } };
  }
  const mimeType = media.mediaType ?? imageTypeOf(media.url);
  return { fileData: { ...(mimeType !== undefined && { mimeType }), fileUri: media.url, ...displayName } };
}
