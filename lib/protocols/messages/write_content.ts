/** Writes content blocks. */
import type { CacheMark, ContentBlock, ContentBlockOf, UnknownMembers } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import type { JsonObject } from "../../json/mod.ts";
import { isRedacted, isRedactedSignature } from "./redacted_thinking.ts";
import { writeInput } from "./tool_input.ts";
import { mediaText, writeMedia } from "./write_media.ts";

const NOTHING: JsonObject = {};

/** Message content: a string for plain text, which every server accepts, else blocks. */
export type WrittenContent = string | JsonObject[];

/**
 * Writes blocks. Empty ones are dropped, because the vendor refuses empty text.
 * @throws {GatewayError} `invalid`, for media that the protocol does not support
 */
export function writeBlocks(blocks: readonly ContentBlock[]): JsonObject[] {
  const [only] = blocks;
  // Most messages have one block, and an array that grows from empty reserves room for seventeen.
  if (blocks.length === 1 && only !== undefined) {
    const written = writeBlock(only);
    return written === undefined ? [] : [written];
  }
  const all: JsonObject[] = [];
  for (const block of blocks) {
    const written = writeBlock(block);
    if (written !== undefined) all.push(written);
  }
  return all;
}

/**
 * Writes the blocks of a system message: text and vendor-specific blocks.
 * @throws {GatewayError} `invalid`, for anything else
 */
export function writeSystemBlocks(blocks: readonly ContentBlock[]): JsonObject[] {
  return writeBlocks(blocks.map((block) => {
    if (block.type !== "media") return block;
    const text = mediaText(block);
    if (text !== undefined) return { ...block, type: "text", text };
    throw new GatewayError(
      "invalid",
      "Cannot send images or files in a system message: this model accepts only text there",
    );
  }));
}

/** Returns content in its shortest form. */
export function shortestContent(blocks: JsonObject[]): WrittenContent {
  const first = blocks[0];
  if (blocks.length !== 1 || first?.type !== "text" || typeof first.text !== "string") return blocks;
  for (const name in first) if (name !== "type" && name !== "text") return blocks;
  return first.text;
}

/** Writes a prompt-cache mark. Five minutes are the default, and not every server knows `ttl`. */
export function cacheControl(cache: CacheMark | undefined): JsonObject {
  if (cache === undefined) return NOTHING;
  return { cache_control: cache.ttl === "1h" ? { type: "ephemeral", ttl: "1h" } : { type: "ephemeral" } };
}

/** Returns unknown members of this protocol. */
export function ownUnknownMembers({ unknownMembers }: { unknownMembers?: UnknownMembers | undefined }): JsonObject {
  return unknownMembers?.from === "messages" ? unknownMembers.members : NOTHING;
}

function writeBlock(block: ContentBlock): JsonObject | undefined {
  switch (block.type) {
    case "text":
      return writeText(block);
    case "refusal":
      return writeText({ ...block, type: "text" });
    case "media":
      return { ...ownUnknownMembers(block), ...writeMedia(block), ...cacheControl(block.cache) };
    case "reasoning":
      return writeReasoning(block);
    case "tool_call":
      return {
        ...ownUnknownMembers(block),
        type: "tool_use",
        id: block.id,
        name: block.name,
        input: writeInput(block),
        ...cacheControl(block.cache),
      };
    case "tool_result":
      return writeResult(block);
    case "vendor_specific":
      return block.from === "messages" ? block.value : undefined;
  }
}

function writeText(block: ContentBlockOf<"text">): JsonObject | undefined {
  if (block.text === "") return undefined;
  const { text, citations, cache } = block;
  // Most texts have no other members.
  if (block.unknownMembers === undefined && citations === undefined && cache === undefined) {
    return { type: "text", text };
  }
  const own = (citations ?? []).filter(({ from }) => from === "messages").map(({ value }) => value);
  return {
    ...ownUnknownMembers(block),
    type: "text",
    text,
    ...(own.length > 0 && { citations: own }),
    ...cacheControl(cache),
  };
}

/** Reasoning has no cache mark in this protocol. Unsigned text has an empty signature. */
function writeReasoning(block: ContentBlockOf<"reasoning">): JsonObject | undefined {
  const { text, signature } = block;
  if (text === "" && signature === undefined) return undefined;
  if (signature !== undefined && (isRedacted(block, signature) || isRedactedSignature(signature))) {
    return { type: "redacted_thinking", data: signature.value };
  }
  return { ...ownUnknownMembers(block), type: "thinking", thinking: text, signature: signature?.value ?? "" };
}

function writeResult(block: ContentBlockOf<"tool_result">): JsonObject {
  const content = writeBlocks(block.blocks);
  return {
    ...ownUnknownMembers(block),
    type: "tool_result",
    tool_use_id: block.callId,
    ...(content.length > 0 && { content: shortestContent(content) }),
    ...(block.isError !== undefined && { is_error: block.isError }),
    ...cacheControl(block.cache),
  };
}
