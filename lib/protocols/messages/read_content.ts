/** Reads the messages of a request and their content blocks. */
import { Buffer } from "node:buffer";
import { decodeMedia, normalizeMediaType, readBase64, readMediaUrl } from "../canonical/media.ts";
import { readCacheMark } from "../canonical/cache_mark.ts";
import { unknownIn } from "../canonical/unknown_members.ts";
import { readRedacted, readSignature } from "../canonical/signature.ts";
import type { CacheMark, Citation, ContentBlock, Media, Message } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import { isObject, type Json, type JsonObject, writeEach, writeJson } from "../../json/mod.ts";
import type { ClientPermissions, PrewrittenJson } from "../codec.ts";
import { sendContent } from "../extras.ts";
import { booleanOf, nonEmptyStringOf, objectOf, objectsOf, present, stringOf } from "../members.ts";

/** The state of reading one request. */
export interface ReadContext {
  /** Number of `cache_control` marks so far. */
  cacheMarks: number;
  images: number;
  /** The JSON text of tool inputs, written in advance; undefined: it is written where it is read. */
  texts: PrewrittenJson | undefined;
  /** The client's permissions; undefined: it may not refer to files at the vendor. */
  permissions: ClientPermissions | undefined;
}

/**
 * Returns the value, which must be an object.
 * @throws {GatewayError} `invalid`, for a number that is kept as text, which the schema takes for an object
 */
export function readObject(value: Json | undefined, param: string): JsonObject {
  if (isObject(value)) return value;
  throw new GatewayError("invalid", `Invalid value for ${param}: expected an object`, { param });
}

/** Reads and counts the cache mark of an object. Returns it for spreading. */
export function readCache(object: JsonObject, context: ReadContext): { cache?: CacheMark } {
  const mark = readCacheMark(object);
  if (mark.cache !== undefined) context.cacheMarks++;
  return mark;
}

const MESSAGE_MEMBERS = new Set(["role", "content"]);
const TEXT_MEMBERS = new Set(["type", "text", "citations", "cache_control"]);
const IMAGE_MEMBERS = new Set(["type", "source", "cache_control"]);
const DOCUMENT_MEMBERS = new Set(["type", "source", "title", "cache_control"]);
const TOOL_USE_MEMBERS = new Set(["type", "id", "name", "input", "cache_control"]);
const TOOL_RESULT_MEMBERS = new Set(["type", "tool_use_id", "content", "is_error", "cache_control"]);
const THINKING_MEMBERS = new Set(["type", "thinking", "signature"]);

/** Reads the system prompt as a message; returns an empty list if it is empty. */
export function readSystem(value: Json | undefined, context: ReadContext): Message[] {
  if (value === undefined || value === null || value === "") return [];
  const blocks = readContent(value, "system", context);
  return blocks.every(isEmpty) ? [] : [{ role: "system", blocks }];
}

/** Reads the conversation. @throws {GatewayError} `invalid`, for what the schema cannot check */
export function readMessages(value: Json | undefined, context: ReadContext): Message[] {
  return objectsOf(value).map((message, index) => ({
    role: message.role === "assistant" || message.role === "system" ? message.role : "user",
    blocks: readContent(message.content, `messages[${index}].content`, context),
    ...unknownIn("messages", message, MESSAGE_MEMBERS),
  }));
}

/**
 * Reads a string or blocks. Empty blocks are dropped: the vendor refuses empty text, but its answers may have it, and
 * clients send it back. If all blocks are empty, the first one stays.
 */
function readContent(value: Json | undefined, path: string, context: ReadContext): ContentBlock[] {
  if (typeof value === "string") return [{ type: "text", text: value }];
  const blocks = objectsOf(value).map((block, index) => readBlock(block, `${path}[${index}]`, context));
  const nonEmpty = blocks.filter((block) => !isEmpty(block));
  return nonEmpty.length > 0 ? nonEmpty : blocks.slice(0, 1);
}

/** True for empty text, and for thinking with neither text nor signature. */
function isEmpty(block: ContentBlock): boolean {
  if (block.type === "text") return block.text === "";
  return block.type === "reasoning" && block.text === "" && block.signature === undefined;
}

function readBlock(block: JsonObject, path: string, context: ReadContext): ContentBlock {
  switch (block.type) {
    case "text":
      return readText(block, path, context);
    case "image":
      context.images++;
      if (isVendorFile(block, context)) return readVendorSpecific(block, path, context);
      return {
        type: "media",
        media: readSource(block.source, `${path}.source`),
        ...readCache(block, context),
        ...unknownIn("messages", block, IMAGE_MEMBERS),
      };
    case "document":
      return readDocument(block, path, context);
    case "tool_use":
      return readToolUse(block, path, context);
    case "tool_result":
      return {
        type: "tool_result",
        callId: stringOf(block.tool_use_id) ?? "",
        blocks: readResult(block.content, `${path}.content`, context),
        ...present({ isError: booleanOf(block.is_error) }),
        ...readCache(block, context),
        ...unknownIn("messages", block, TOOL_RESULT_MEMBERS),
      };
    case "thinking":
      return readThinking(block);
    case "redacted_thinking":
      return readRedacted(stringOf(block.data) ?? "");
    case "container_upload":
      if (context.permissions?.vendorState === true) return readVendorSpecific(block, path, context);
      throw fileError(`${path}.file_id`);
    default:
      return readVendorSpecific(block, path, context);
  }
}

/** True for media with a file id, if the client may use it. */
function isVendorFile({ source }: JsonObject, { permissions }: ReadContext): boolean {
  return permissions?.vendorState === true && isObject(source) && source.type === "file";
}

function readToolUse(block: JsonObject, path: string, context: ReadContext): ContentBlock {
  const input = readObject(block.input, `${path}.input`);
  return {
    type: "tool_call",
    id: stringOf(block.id) ?? "",
    name: stringOf(block.name) ?? "",
    arguments: context.texts?.get(input) ?? writeJson(input),
    ...readCache(block, context),
    ...unknownIn("messages", block, TOOL_USE_MEMBERS),
  };
}

function readText(block: JsonObject, path: string, context: ReadContext): ContentBlock {
  const text = stringOf(block.text) ?? "";
  const mark = readCache(block, context);
  if (text === "" && mark.cache !== undefined) {
    throw new GatewayError("invalid", "cache_control cannot be set for empty text blocks", {
      param: `${path}.cache_control`,
    });
  }
  const citations = objectsOf(block.citations).map((value): Citation => ({ from: "messages", value }));
  return {
    type: "text",
    text,
    ...(citations.length > 0 && { citations }),
    ...mark,
    ...unknownIn("messages", block, TEXT_MEMBERS),
  };
}

function readThinking(block: JsonObject): ContentBlock {
  const text = stringOf(block.thinking) ?? "";
  // Answers have unsigned thinking with an empty signature, which clients send back.
  const signature = nonEmptyStringOf(block.signature);
  return {
    type: "reasoning",
    text,
    ...(signature !== undefined &&
      { ...(text === "" && { hidden: true }), signature: readSignature(signature, "anthropic") }),
    ...unknownIn("messages", block, THINKING_MEMBERS),
  };
}

function readResult(value: Json | undefined, path: string, context: ReadContext): ContentBlock[] {
  if (value === undefined || value === null) return [];
  return readContent(value, path, context).filter((block) => !isEmpty(block));
}

function readDocument(block: JsonObject, path: string, context: ReadContext): ContentBlock {
  const source = objectOf(block.source) ?? {};
  if (isVendorFile(block, context)) return readVendorSpecific(block, path, context);
  // Only this protocol can cite individual blocks of a document.
  if (source.type === "content" && typeof source.content !== "string") {
    checkInnerFiles(source.content, `${path}.source.content`, context);
    return readVendorSpecific(block, path, context);
  }
  return {
    type: "media",
    media: readDocumentSource(source, `${path}.source`),
    ...present({ name: stringOf(block.title) }),
    ...readCache(block, context),
    ...unknownIn("messages", block, DOCUMENT_MEMBERS),
  };
}

function readDocumentSource(source: JsonObject, path: string): Media {
  let text: Json | undefined;
  if (source.type === "text") text = source.data;
  else if (source.type === "content") text = source.content;
  if (typeof text === "string") {
    return { kind: "bytes", base64: Buffer.from(text).toString("base64"), mediaType: "text/plain" };
  }
  const media = readSource(source, path);
  // In this protocol the document at a URL is a PDF. A URL without a media type would count as an image.
  return media.kind === "url" ? { ...media, mediaType: "application/pdf" } : media;
}

function readSource(value: Json | undefined, path: string): Media {
  const { type, data, media_type: mediaType, url } = objectOf(value) ?? {};
  if (type === "file") throw fileError(`${path}.file_id`);
  if (type === "url") return decodeMedia(() => readMediaUrl(stringOf(url) ?? ""), `${path}.url`);
  return {
    kind: "bytes",
    base64: decodeMedia(() => readBase64(stringOf(data) ?? ""), `${path}.data`),
    mediaType: normalizeMediaType(stringOf(mediaType) ?? ""),
  };
}

/** Returns a block as it is, after checking it. Its cache mark is counted and stays inside. */
function readVendorSpecific(block: JsonObject, path: string, context: ReadContext): ContentBlock {
  readCache(block, context);
  if (block.type === "tool_addition") checkAddition(block, path, context);
  else if (Array.isArray(block.tool_changes)) {
    for (const [index, change] of block.tool_changes.entries()) {
      if (isObject(change)) checkAddition(change, `${path}.tool_changes[${index}]`, context);
    }
  }
  context.permissions?.checkItem(block, path);
  return { type: "vendor_specific", from: "messages", value: block };
}

/** Checks a tool that is defined inside the conversation. */
function checkAddition({ tool }: JsonObject, path: string, { permissions }: ReadContext): void {
  if (isObject(tool) && isObject(tool.definition)) permissions?.checkTool(tool.definition, `${path}.tool.definition`);
}

/** Refuses file ids inside a document, whose blocks are not read. */
function checkInnerFiles(content: Json | undefined, path: string, { permissions }: ReadContext): void {
  if (!Array.isArray(content) || permissions?.vendorState === true) return;
  for (const [index, part] of content.entries()) {
    if (isObject(part) && isObject(part.source) && part.source.type === "file") {
      throw fileError(`${path}[${index}].source.file_id`);
    }
  }
}

function fileError(param: string): GatewayError {
  return new GatewayError("invalid", `Cannot use a file id: ${sendContent("the content")}`, { param });
}

/** Writes the inputs of a conversation's calls as JSON text, in steps. */
export function writeInputs({ messages }: JsonObject): Generator<void, PrewrittenJson> {
  const inputs: JsonObject[] = [];
  for (const { content } of objectsOf(messages)) {
    for (const { type, input } of objectsOf(content)) {
      if (type === "tool_use" && isObject(input)) inputs.push(input);
    }
  }
  return writeEach(inputs);
}
