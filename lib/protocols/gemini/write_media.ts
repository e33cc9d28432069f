/** Writes images and files as parts. */
import { imageTypeOf } from "../canonical/media.ts";
import type { Media } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";

/** Writes media as a part: bytes inline, other media by URL. Google detects a missing type of a URL. */
export function writeMedia(media: Media, name?: string): JsonObject {
  const displayName = name === undefined ? {} : { displayName: name };
  if (media.kind === "bytes") {
    return { inlineData: { mimeType: media.mediaType, data: media.base64, ...displayName } };
  }
  const mimeType = media.mediaType ?? imageTypeOf(media.url);
  return { fileData: { ...(mimeType !== undefined && { mimeType }), fileUri: media.url, ...displayName } };
}
