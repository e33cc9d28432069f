/** Blocks of a message as content parts. */
import { modalityOf, writeMediaUrl } from "../canonical/media.ts";
import type { ContentBlock, ContentBlockOf } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import type { JsonObject } from "../../json/mod.ts";
import { fileName } from "./read_parts.ts";
import { ownMembers, type ResponsesWriteContext, writeCache } from "./write_context.ts";

/** Who says it: what the model said has part types of its own. */
export type MessageAuthor = "model" | "others";

/** Parts that are kept whole: sound, and files that the vendor keeps. */
const PARTS: ReadonlySet<string> = new Set(["input_audio", "input_image", "input_file"]);

/** True for blocks that are parts of a message, and not items. */
export function isPart(block: ContentBlock): boolean {
  return block.type === "text" || block.type === "refusal" || block.type === "media" ||
    (block.type === "vendor_specific" && block.from === "responses" && PARTS.has(String(block.value.type)));
}

/**
 * Writes a block as a content part; nothing where it has no place here, which is then named.
 * @throws {GatewayError} `invalid`, for media that the protocol cannot say
 */
export function writePart(block: ContentBlock, speaker: MessageAuthor, context: ResponsesWriteContext): JsonObject[] {
  switch (block.type) {
    case "text":
      return [writeText(block, speaker, context)];
    case "refusal":
      return [{ ...partMembers(block), type: "refusal", refusal: block.text, ...writeCache(block, context) }];
    case "media":
      if (speaker === "model" && !context.own) {
        context.target.dropped.add("images");
        return [];
      }
      return [{ ...writeMedia(block, context), ...writeCache(block, context) }];
    case "vendor_specific":
      return [block.value];
    default:
      throw new TypeError(`Cannot write a block of type "${block.type}" as a content part`);
  }
}

function writeText(block: ContentBlockOf<"text">, speaker: MessageAuthor, context: ResponsesWriteContext): JsonObject {
  const annotations = (block.citations ?? []).filter(({ from }) => from === "responses").map(({ value }) => value);
  if (annotations.length < (block.citations?.length ?? 0)) context.target.dropped.add(context.names.citations);
  return {
    ...partMembers(block),
    type: speaker === "model" ? "output_text" : "input_text",
    text: block.text,
    ...(annotations.length > 0 && { annotations }),
    ...writeCache(block, context),
  };
}

/** The first part of a message of the model's also keeps the members of its item, which stand elsewhere. */
function partMembers({ unknownMembers }: ContentBlock): JsonObject {
  const { item: _item, ...members } = ownMembers(unknownMembers);
  return members;
}

function writeMedia(block: ContentBlockOf<"media">, context: ResponsesWriteContext): JsonObject {
  const { media, name } = block;
  const modality = modalityOf(media, name);
  if (modality === "audio" || modality === "video") {
    throw new GatewayError("invalid", `Cannot send input of type "${modality}" to this model`);
  }
  const members = partMembers(block);
  if (modality === "image" && (name === undefined || !context.own)) {
    if (name !== undefined) context.target.dropped.add(context.names.fileName);
    return { ...members, type: "input_image", image_url: writeMediaUrl(media) };
  }
  if (media.kind === "url") {
    if (name !== undefined && !context.own) context.target.dropped.add(context.names.fileName);
    return {
      ...members,
      type: "input_file",
      file_url: media.url,
      ...(context.own && name !== fileName(media.url) && { filename: name }),
    };
  }
  const text = modality === "text" && !context.own ? decodeText(media.base64) : undefined;
  if (text !== undefined) return { type: "input_text", text: name === undefined ? text : `${name}\n\n${text}` };
  const filename = name ?? (context.own ? undefined : media.mediaType === "application/pdf" ? "file.pdf" : "file");
  return {
    ...members,
    type: "input_file",
    ...(filename !== undefined && { filename }),
    file_data: writeMediaUrl(media),
  };
}

/** The text of a text file; nothing where it is not UTF-8. */
function decodeText(base64: string): string | undefined {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
