/** Writes the content blocks of a messages request. */
import { writeCacheMark } from "../canonical/cache_mark.ts";
import { isRedacted } from "../canonical/signature.ts";
import { inputOf } from "../canonical/tool_input.ts";
import type { ContentBlock, ContentBlockOf } from "../canonical/types.ts";
import { ownMembers } from "../canonical/unknown_members.ts";
import { GatewayError } from "../../errors.ts";
import type { JsonObject } from "../../json/mod.ts";
import { mediaText, writeMedia } from "./write_media.ts";

/** Content as written: a string for one plain text, which every server accepts, else blocks. */
export type WrittenContent = string | JsonObject[];

/** Writes blocks. @throws {GatewayError} `invalid`, for media that the protocol does not support */
export function writeBlocks(blocks: readonly ContentBlock[]): JsonObject[] {
  return blocks.map(writeBlock);
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

/** Returns a string for blocks that are one plain text, else the blocks. */
export function shortestContent(blocks: JsonObject[]): WrittenContent {
  const first = blocks[0];
  if (blocks.length !== 1 || first?.type !== "text" || typeof first.text !== "string") return blocks;
  for (const name in first) if (name !== "type" && name !== "text") return blocks;
  return first.text;
}

function writeBlock(block: ContentBlock): JsonObject {
  switch (block.type) {
    case "text":
      return writeText(block);
    case "refusal":
      return writeText({ ...block, type: "text" });
    case "media":
      return { ...ownMembers(block), ...writeMedia(block), ...writeCacheMark(block) };
    case "reasoning":
      return writeReasoning(block);
    case "tool_call":
      return {
        ...ownMembers(block),
        type: "tool_use",
        id: block.id,
        name: block.name,
        input: inputOf(block),
        ...writeCacheMark(block),
      };
    case "tool_result":
      return writeResult(block);
    case "vendor_specific":
      return block.value;
  }
}

function writeText(block: ContentBlockOf<"text">): JsonObject {
  const { text, citations } = block;
  return {
    ...ownMembers(block),
    type: "text",
    text,
    ...(citations !== undefined && { citations: citations.map(({ value }) => value) }),
    ...writeCacheMark(block),
  };
}

/** Writes reasoning. Unsigned text gets an empty signature. In this protocol reasoning has no cache mark. */
function writeReasoning(block: ContentBlockOf<"reasoning">): JsonObject {
  const { text, signature } = block;
  if (isRedacted(signature)) return { type: "redacted_thinking", data: signature?.value ?? "" };
  return { ...ownMembers(block), type: "thinking", thinking: text, signature: signature?.value ?? "" };
}

function writeResult(block: ContentBlockOf<"tool_result">): JsonObject {
  const content = writeBlocks(block.blocks);
  return {
    ...ownMembers(block),
    type: "tool_result",
    tool_use_id: block.callId,
    ...(content.length > 0 && { content: shortestContent(content) }),
    ...(block.isError !== undefined && { is_error: block.isError }),
    ...writeCacheMark(block),
  };
}
