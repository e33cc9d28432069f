/** Reads messages and their content blocks. */
import { decodeMedia, normalizeMediaType, readBase64, readMediaUrl } from "../canonical/media.ts";
import { readSignature } from "../canonical/signature.ts";
import type { ContentBlock, Media, Message } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import { isObject, type Json, type JsonObject, writeJson } from "../../json/mod.ts";
import { sendContent } from "../extras.ts";
import { booleanOf, stringOf } from "../members.ts";
import { VENDOR_SPECIFIC_TYPES } from "./content_schema.ts";
import {
  readArray,
  readCache,
  type ReadContext,
  readObject,
  readString,
  readUnknownMembers,
  withoutUndefined,
} from "./members.ts";
import { readRedacted } from "./redacted_thinking.ts";

const MESSAGE = new Set(["role", "content"]);
const TEXT = new Set(["type", "text", "citations", "cache_control"]);
const IMAGE = new Set(["type", "source", "cache_control"]);
const DOCUMENT = new Set(["type", "source", "title", "cache_control"]);
const TOOL_USE = new Set(["type", "id", "name", "input", "cache_control"]);
const TOOL_RESULT = new Set(["type", "tool_use_id", "content", "is_error", "cache_control"]);
const THINKING = new Set(["type", "thinking", "signature"]);
const KNOWN_VENDOR_TYPES: ReadonlySet<string> = new Set(VENDOR_SPECIFIC_TYPES);

/** Reads the system prompt as a message; none if it is empty. */
export function readSystem(value: Json | undefined, context: ReadContext): Message[] {
  if (value === undefined || value === null || value === "") return [];
  const blocks = readContent(value, "system", context);
  return blocks.every(isEmpty) ? [] : [{ role: "system", blocks }];
}

/** Reads the conversation. @throws {GatewayError} `invalid` */
export function readMessages(value: Json | undefined, context: ReadContext): Message[] {
  return readArray(value, "messages").map((item, index) => {
    const path = `messages[${index}]`;
    const message = readObject(item, path);
    const { role } = message;
    if (role !== "user" && role !== "assistant" && role !== "system") {
      throw new GatewayError("invalid", 'Input should be "user", "assistant" or "system"', { param: `${path}.role` });
    }
    return withoutUndefined({
      role,
      blocks: readContent(message.content, `${path}.content`, context),
      unknownMembers: readUnknownMembers(message, MESSAGE),
    });
  });
}

/**
 * Reads a string or blocks. Empty blocks are dropped: the vendor refuses empty text, yet its answers may have it, and
 * clients send it back. The last block of a message stays.
 */
function readContent(value: Json | undefined, path: string, context: ReadContext): ContentBlock[] {
  if (typeof value === "string") return [{ type: "text", text: value }];
  const blocks = readArray(value, path).map((item, index) => {
    const blockPath = `${path}[${index}]`;
    return readBlock(readObject(item, blockPath), blockPath, context);
  });
  const kept = blocks.filter((block) => !isEmpty(block));
  return kept.length > 0 ? kept : blocks.slice(0, 1);
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
      if (isVendorFile(block, context)) return vendorSpecific(block, path, context);
      return withoutUndefined({
        type: "media",
        media: readSource(readObject(block.source, `${path}.source`), `${path}.source`),
        cache: readCache(block, context),
        unknownMembers: readUnknownMembers(block, IMAGE),
      });
    case "document":
      return readDocument(block, path, context);
    case "tool_use":
      return readToolUse(block, path, context);
    case "tool_result":
      return withoutUndefined({
        type: "tool_result",
        callId: readString(block.tool_use_id, `${path}.tool_use_id`),
        blocks: readResult(block.content, `${path}.content`, context),
        isError: booleanOf(block.is_error),
        cache: readCache(block, context),
        unknownMembers: readUnknownMembers(block, TOOL_RESULT),
      });
    case "thinking":
      return readThinking(block, path);
    case "redacted_thinking":
      return readRedacted(readString(block.data, `${path}.data`));
    case "container_upload":
      if (context.permits?.vendorState === true) return vendorSpecific(block, path, context);
      throw fileError(`${path}.file_id`);
    default:
      return readVendorSpecific(block, path, context);
  }
}

/** True for a file id that the client may use. */
function isVendorFile({ source }: JsonObject, { permits }: ReadContext): boolean {
  return permits?.vendorState === true && isObject(source) && source.type === "file";
}

function readToolUse(block: JsonObject, path: string, context: ReadContext): ContentBlock {
  const id = readString(block.id, `${path}.id`);
  const name = readString(block.name, `${path}.name`);
  const input = readObject(block.input, `${path}.input`);
  return withoutUndefined({
    type: "tool_call",
    id,
    name,
    arguments: context.texts?.get(input) ?? writeJson(input),
    cache: readCache(block, context),
    unknownMembers: readUnknownMembers(block, TOOL_USE),
  });
}

function readText(block: JsonObject, path: string, context: ReadContext): ContentBlock {
  const text = readString(block.text, `${path}.text`);
  const cache = readCache(block, context);
  if (text === "" && cache !== undefined) {
    throw new GatewayError("invalid", "cache_control cannot be set for empty text blocks", {
      param: `${path}.cache_control`,
    });
  }
  const citations = Array.isArray(block.citations) ? block.citations.filter(isObject) : [];
  return withoutUndefined({
    type: "text",
    text,
    citations: citations.length === 0 ? undefined : citations.map((value) => ({ from: "messages", value })),
    cache,
    unknownMembers: readUnknownMembers(block, TEXT),
  });
}

function readThinking(block: JsonObject, path: string): ContentBlock {
  const text = readString(block.thinking, `${path}.thinking`);
  const signature = readString(block.signature ?? "", `${path}.signature`);
  return withoutUndefined({
    type: "reasoning",
    text,
    hidden: text === "" && signature !== "" ? true : undefined,
    // Unsigned thinking is sent with an empty signature, which comes back.
    signature: signature === "" ? undefined : readSignature(signature, "anthropic"),
    unknownMembers: readUnknownMembers(block, THINKING),
  });
}

function readResult(value: Json | undefined, path: string, context: ReadContext): ContentBlock[] {
  if (value === undefined || value === null) return [];
  return readContent(value, path, context).filter((block) => !isEmpty(block));
}

function readDocument(block: JsonObject, path: string, context: ReadContext): ContentBlock {
  const source = readObject(block.source, `${path}.source`);
  if (isVendorFile(block, context)) return vendorSpecific(block, path, context);
  // Only here can blocks inside a document be cited one by one.
  if (source.type === "content" && typeof source.content !== "string") {
    checkInnerFiles(source.content, `${path}.source.content`, context);
    return vendorSpecific(block, path, context);
  }
  return withoutUndefined({
    type: "media",
    media: readDocumentSource(source, `${path}.source`),
    name: stringOf(block.title),
    cache: readCache(block, context),
    unknownMembers: readUnknownMembers(block, DOCUMENT),
  });
}

function readDocumentSource(source: JsonObject, path: string): Media {
  switch (source.type) {
    case "text":
      return { kind: "bytes", base64: encodeText(readString(source.data, `${path}.data`)), mediaType: "text/plain" };
    case "content":
      return {
        kind: "bytes",
        base64: encodeText(readString(source.content, `${path}.content`)),
        mediaType: "text/plain",
      };
    default: {
      const media = readSource(source, path);
      // Documents behind URLs are PDFs by definition; a URL without a media type would count as an image.
      return media.kind === "url" ? { ...media, mediaType: "application/pdf" } : media;
    }
  }
}

function readSource(source: JsonObject, path: string): Media {
  switch (source.type) {
    case "base64":
      return {
        kind: "bytes",
        base64: decodeMedia(() => readBase64(readString(source.data, `${path}.data`)), `${path}.data`),
        mediaType: normalizeMediaType(readString(source.media_type, `${path}.media_type`)),
      };
    case "url":
      return decodeMedia(() => readMediaUrl(readString(source.url, `${path}.url`)), `${path}.url`);
    case "file":
      throw fileError(`${path}.file_id`);
    default:
      throw new GatewayError("invalid", "Unexpected source type", { param: `${path}.type` });
  }
}

function readVendorSpecific(block: JsonObject, path: string, context: ReadContext): ContentBlock {
  if (typeof block.type === "string" && KNOWN_VENDOR_TYPES.has(block.type)) return vendorSpecific(block, path, context);
  throw new GatewayError("invalid", "Unexpected content block type", { param: `${path}.type` });
}

/** Keeps a block whole. Its cache mark stays inside and is counted. */
function vendorSpecific(block: JsonObject, path: string, context: ReadContext): ContentBlock {
  readCache(block, context);
  if (block.type === "tool_addition") checkAddition(block, path, context);
  else if (Array.isArray(block.tool_changes)) {
    for (const [index, change] of block.tool_changes.entries()) {
      if (isObject(change)) checkAddition(change, `${path}.tool_changes[${index}]`, context);
    }
  }
  context.permits?.checkItem(block, path);
  return { type: "vendor_specific", from: "messages", value: block };
}

/** Tools may also be defined inside a conversation. */
function checkAddition({ tool }: JsonObject, path: string, { permits }: ReadContext): void {
  if (isObject(tool) && isObject(tool.definition)) permits?.checkTool(tool.definition, `${path}.tool.definition`);
}

/** Images inside a document are not read one by one. */
function checkInnerFiles(content: Json | undefined, path: string, { permits }: ReadContext): void {
  if (!Array.isArray(content) || permits?.vendorState === true) return;
  for (const [index, part] of content.entries()) {
    if (isObject(part) && isObject(part.source) && part.source.type === "file") {
      throw fileError(`${path}[${index}].source.file_id`);
    }
  }
}

function fileError(param: string): GatewayError {
  return new GatewayError("invalid", `Cannot use a file id: ${sendContent("the content")}`, { param });
}

/** Encodes UTF-8 text as base64. */
function encodeText(text: string): string {
  const bytes = new TextEncoder().encode(text);
  const pieces: string[] = [];
  // More arguments in one call overflow the stack.
  for (let at = 0; at < bytes.length; at += 8192) {
    pieces.push(String.fromCharCode(...bytes.subarray(at, at + 8192)));
  }
  return btoa(pieces.join(""));
}
