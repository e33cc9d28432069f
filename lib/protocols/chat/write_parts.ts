/** Writes the calls and the content of chat messages: a string for one plain text, else parts. */
import { writeCacheMark } from "../canonical/cache_mark.ts";
import { PARAMETER_NAMES } from "../canonical/parameter_names.ts";
import { decodeTextFile, modalityOf, writeMediaUrl } from "../canonical/media.ts";
import type { CacheMark, ContentBlock, ContentBlockOf, Prompt, UnknownMembers } from "../canonical/types.ts";
import { withCallSignature } from "../canonical/signature.ts";
import { NO_MEMBERS, ownMembers } from "../canonical/unknown_members.ts";
import { GatewayError } from "../../errors.ts";
import { isObject, type Json, type JsonObject } from "../../json/mod.ts";
import type { WriteTarget } from "../upstream_codec.ts";

/** A prompt and its target. */
export interface ChatWriteContext {
  prompt: Prompt;
  target: WriteTarget;
}

/** Writes blocks as content. A single plain text becomes a string, because some servers accept nothing else. */
export function writeContent(blocks: readonly ContentBlock[], context: ChatWriteContext): Json {
  const parts = blocks.map((block) => writePart(block, context));
  const [only] = parts;
  if (only === undefined) return "";
  return parts.length === 1 && isPlain(only) ? only.text ?? "" : parts;
}

/** True for a text part without other members. */
export function isPlain(part: JsonObject): boolean {
  return part.type === "text" && Object.keys(part).length === 2;
}

/** Writes a block as a part. A refusal becomes text: it is only here if it is not in an assistant message. */
export function writePart(block: ContentBlock, context: ChatWriteContext): JsonObject {
  switch (block.type) {
    case "text":
    case "refusal":
      return withMembers({ type: "text", text: block.text }, block);
    case "media":
      return withMembers(writeMedia(block, context), block);
    case "vendor_specific":
      return block.value;
    default:
      throw new TypeError(`Cannot write a block of type "${block.type}" as a part`);
  }
}

/** Writes a call, with its signature if it has one. Blank arguments of a function become an empty object. */
export function writeCall(
  { id, name, custom, arguments: input }: ContentBlockOf<"tool_call">,
  signature: string | undefined,
): JsonObject {
  const written = custom === true
    ? { id, type: "custom", custom: { name, input } }
    : { id, type: "function", function: { name, arguments: input.trim() === "" ? "{}" : input } };
  return withCallSignature(written, signature);
}

const AUDIO_FORMATS: ReadonlyMap<string, string> = new Map([
  ["audio/wav", "wav"],
  ["audio/x-wav", "wav"],
  ["audio/mpeg", "mp3"],
  ["audio/mp3", "mp3"],
]);

function writeMedia({ media, name }: ContentBlockOf<"media">, { prompt, target }: ChatWriteContext): JsonObject {
  const modality = modalityOf(media, name);
  // An image that a chat client sends as a file stays a file.
  if (modality === "image" && (name === undefined || prompt.protocol !== "chat")) {
    if (name !== undefined) target.dropped.add(PARAMETER_NAMES[prompt.protocol].fileName);
    return { type: "image_url", image_url: { url: writeMediaUrl(media) } };
  }
  const format = media.kind === "bytes" ? AUDIO_FORMATS.get(media.mediaType) : undefined;
  if (format !== undefined && media.kind === "bytes") {
    return { type: "input_audio", input_audio: { data: media.base64, format } };
  }
  const text = modality === "text" && media.kind === "bytes" ? decodeTextFile(media.base64) : undefined;
  if (text !== undefined) return { type: "text", text: name === undefined ? text : `${name}\n${text}` };
  const isChatClient = prompt.protocol === "chat";
  if (media.kind === "url" && !isChatClient) {
    const param = PARAMETER_NAMES[prompt.protocol].messages;
    throw new GatewayError("invalid", "Cannot send a file by its URL: this model accepts files only as data", {
      param,
    });
  }
  // OpenAI requires a name; other protocols do not.
  const filename = name ?? (isChatClient ? undefined : "document");
  return { type: "file", file: { ...(filename !== undefined && { filename }), file_data: writeMediaUrl(media) } };
}

/** Adds the prompt-cache mark and the unknown members of a block or tool to its JSON. */
export function withMembers(
  written: JsonObject,
  source: { cache?: CacheMark; unknownMembers?: UnknownMembers },
): JsonObject {
  const marked = source.cache === undefined ? written : { ...written, ...writeCacheMark(source) };
  return withUnknownMembers(marked, ownMembers(source));
}

/** Adds unknown members to the written ones, also inside written objects. An unknown member replaces a written one. */
export function withUnknownMembers(written: JsonObject, unknownMembers: JsonObject): JsonObject {
  if (unknownMembers === NO_MEMBERS) return written;
  const members = new Map<string, Json | undefined>(Object.entries(written));
  for (const [name, value] of Object.entries(unknownMembers)) {
    const known = members.get(name);
    members.set(name, isObject(known) && isObject(value) ? { ...known, ...value } : value);
  }
  return Object.fromEntries(members);
}
