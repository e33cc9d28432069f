/** Writes the blocks of a message as content parts. */
import { writeCacheMark } from "../canonical/cache_mark.ts";
import type { ParameterNames } from "../canonical/parameter_names.ts";
import { decodeTextFile, modalityOf, writeMediaUrl } from "../canonical/media.ts";
import type { ContentBlock, ContentBlockOf } from "../canonical/types.ts";
import { ownMembers } from "../canonical/unknown_members.ts";
import { GatewayError } from "../../errors.ts";
import type { JsonObject } from "../../json/mod.ts";
import type { WriteTarget } from "../upstream_codec.ts";
import { fileName } from "./read_parts.ts";

/** A prompt's target, and facts about the prompt that the writers of its parts need. */
export interface ResponsesWriteContext {
  /** True if the client speaks this protocol, too. Its members are written unchanged. */
  own: boolean;
  target: WriteTarget;
  /** The client's names of parameters that may be dropped. */
  names: Readonly<ParameterNames>;
  /** Ids of the calls of custom tools. */
  customCalls: ReadonlySet<string>;
}

/** The author of a message. The parts of the model have other types than those of others. */
export type MessageAuthor = "model" | "others";

/** Types of parts that are kept as they are: audio, and images and files that the vendor stores under an id. */
const VENDOR_PARTS: ReadonlySet<string> = new Set(["input_audio", "input_image", "input_file"]);

/** True for blocks that are parts of a message, not items. */
export function isPart(block: ContentBlock): boolean {
  return block.type === "text" || block.type === "refusal" || block.type === "media" ||
    (block.type === "vendor_specific" && VENDOR_PARTS.has(String(block.value.type)));
}

/**
 * Writes a block as content parts. Images of the model cannot be written, and are added to `dropped`.
 * @throws {GatewayError} `invalid`, for media that the protocol does not support
 */
export function writePart(block: ContentBlock, author: MessageAuthor, context: ResponsesWriteContext): JsonObject[] {
  switch (block.type) {
    case "text":
      return [writeText(block, author)];
    case "refusal":
      return [{ ...partMembers(block), type: "refusal", refusal: block.text, ...writeCacheMark(block) }];
    case "media":
      if (author === "model" && !context.own) {
        context.target.dropped.add("images");
        return [];
      }
      return [{ ...writeMedia(block, context), ...writeCacheMark(block) }];
    case "vendor_specific":
      return [block.value];
    default:
      throw new TypeError(`Cannot write a block of type "${block.type}" as a content part`);
  }
}

function writeText(block: ContentBlockOf<"text">, author: MessageAuthor): JsonObject {
  const { text, citations } = block;
  return {
    ...partMembers(block),
    type: author === "model" ? "output_text" : "input_text",
    text,
    ...(citations !== undefined && { annotations: citations.map(({ value }) => value) }),
    ...writeCacheMark(block),
  };
}

/** Returns the unknown members of a part, without those of its item, which `writeInput` writes. */
function partMembers(block: ContentBlock): JsonObject {
  const { item: _item, ...members } = ownMembers(block);
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
  const text = modality === "text" && !context.own ? decodeTextFile(media.base64) : undefined;
  if (text !== undefined) return { type: "input_text", text: name === undefined ? text : `${name}\n\n${text}` };
  const usualName = media.mediaType === "application/pdf" ? "file.pdf" : "file";
  const filename = name ?? (context.own ? undefined : usualName);
  return {
    ...members,
    type: "input_file",
    ...(filename !== undefined && { filename }),
    file_data: writeMediaUrl(media),
  };
}
