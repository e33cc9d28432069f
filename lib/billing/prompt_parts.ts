/** Lists the parts of a prompt that a model reads, and estimates the tokens of images, files and texts by size. */
import type { ContentBlock, ContentBlockOf, Media, Prompt, Tool } from "../protocols/canonical/types.ts";
import { PDF_BASE64 } from "../protocols/canonical/media.ts";
import { type CharCodes, type JsonObject, writeEachSliced } from "../json/mod.ts";
import { runSliced } from "../scheduler.ts";
import { imageSizeBase64 } from "./image_size.ts";
import { countPdfPages, type InflateBudget, inflateBudget, pagesBySize, type PdfPages } from "./pdf_pages.ts";

/** Tokens of the vendor's text around a message, by rule of thumb. */
export const TOKENS_PER_MESSAGE = 3;
/** Tokens of the start of the answer. */
export const TOKENS_OF_PRIMER = 3;

/** Anthropic's formula for images: the longer side is scaled down to this, then a token counts for 750 pixels. */
const MAX_IMAGE_SIDE = 1568;
const PIXELS_PER_TOKEN = 750;
/** Tokens of an image of unknown size and of a PDF page, which vendors read as an image and its text. */
const TOKENS_OF_UNKNOWN_MEDIA = 1600;
const BYTES_PER_TOKEN = 4;

/** A part of a prompt: a text, an image or file, or a sealed value that only its vendor can read. */
export type PromptPart = string | ContentBlockOf<"media"> | { type: "sealed"; value: string };

/** Yields the parts outside the messages: tools and answer format. A caller can pause between two parts. */
export function* fixedParts({ tools, format }: Pick<Prompt, "tools" | "format">): Generator<PromptPart> {
  for (const tool of tools) yield* toolParts(tool);
  yield* formatParts(format);
}

/** Yields the parts of the answer's format. */
export function* formatParts(format: Prompt["format"]): Generator<string> {
  if (format?.type !== "json_schema") return;
  if (format.name !== undefined) yield format.name;
  if (format.description !== undefined) yield format.description;
  yield jsonOf(format.schema);
}

function* toolParts(tool: Tool): Generator<PromptPart> {
  if (tool.type === "hosted") {
    yield jsonOf(tool.value);
    return;
  }
  yield tool.name;
  if (tool.namespace !== undefined) yield tool.namespace;
  if (tool.description !== undefined) yield tool.description;
  const schema = tool.type === "function" ? tool.parameters : tool.format;
  if (schema !== undefined) yield jsonOf(schema);
}

/** Yields the parts of the blocks of a message or an answer. */
export function* blockParts(blocks: readonly ContentBlock[]): Generator<PromptPart> {
  for (const block of blocks) {
    switch (block.type) {
      case "text":
      case "refusal":
        yield block.text;
        break;
      case "reasoning":
        yield block.text;
        if (block.signature !== undefined) yield { type: "sealed", value: block.signature.value };
        break;
      case "media":
        if (block.name !== undefined) yield block.name;
        yield block;
        break;
      case "tool_call":
        yield block.name;
        if (block.namespace !== undefined) yield block.namespace;
        yield block.arguments;
        break;
      case "tool_result":
        yield* blockParts(block.blocks);
        break;
      case "vendor_specific":
        yield jsonOf(block.value);
    }
  }
}

const cachedJson = new WeakMap<JsonObject, string>();

/** Cached page counts of PDFs. */
const cachedPages = new WeakMap<Media, PdfPages>();

/**
 * Writes the JSON parts of a long prompt and counts its PDF pages, with pauses. Both are cached for functions that read
 * the prompt synchronously afterwards.
 */
export async function writeLongParts({ tools, format, messages }: Prompt): Promise<void> {
  const values = tools.map((tool) => {
    if (tool.type === "hosted") return tool.value;
    return tool.type === "function" ? tool.parameters : tool.format;
  });
  if (format?.type === "json_schema") values.push(format.schema);
  for (const { blocks } of messages) {
    for (const block of blocks) if (block.type === "vendor_specific") values.push(block.value);
  }
  const defined = values.filter((value) => value !== undefined);
  if (defined.length > 0) {
    for (const [value, text] of await writeEachSliced(defined)) cachedJson.set(value, text);
  }
  await countPages({ messages });
}

/** Counts the pages of all PDFs of a prompt, with pauses. The counts are cached, so that each PDF is read once. */
export async function countPages({ messages }: Pick<Prompt, "messages">): Promise<void> {
  let budget: InflateBudget | undefined;
  for (const media of mediaIn(messages)) {
    if (media.kind === "url" || !isPdf(media) || cachedPages.has(media)) continue;
    budget ??= inflateBudget();
    cachedPages.set(media, await runSliced(countPdfPages(media.base64, budget)));
  }
}

function* mediaIn(messages: readonly { blocks: readonly ContentBlock[] }[]): Generator<Media> {
  for (const { blocks } of messages) {
    for (const part of blockParts(blocks)) if (typeof part !== "string" && part.type === "media") yield part.media;
  }
}

/** Returns whether a prompt has images or files, whose tokens can only be estimated. */
export function isEstimated(prompt: Pick<Prompt, "messages" | "plain">): boolean {
  if (prompt.plain !== undefined) return prompt.plain.images !== undefined;
  for (const media of mediaIn(prompt.messages)) {
    if (media.kind === "url" || !media.mediaType.startsWith("text/")) return true;
  }
  return false;
}

function jsonOf(value: JsonObject): string {
  return cachedJson.get(value) ?? JSON.stringify(value);
}

/** Estimates the tokens of an image by its pixels, of a PDF by its pages, and of any other file by its bytes. */
export function mediaTokens(media: Media): number {
  if (media.kind === "url") return TOKENS_OF_UNKNOWN_MEDIA;
  if (isPdf(media)) return TOKENS_OF_UNKNOWN_MEDIA * pagesOf(media);
  return media.mediaType.startsWith("image/") ? imageTokens(media.base64) : tokensOfBytes(base64Bytes(media.base64));
}

/** Returns whether media is a PDF by its type or its content: upstreams may get it as one whatever its type is. */
export function isPdf(media: Media): boolean {
  return media.kind === "bytes" &&
    (media.mediaType.startsWith("application/pdf") || media.base64.startsWith(PDF_BASE64));
}

/** Returns the pages of a file; 1 if it is not a PDF. They are estimated by its size if `countPages` has not run. */
export function pagesOf(media: Media): number {
  return media.kind === "bytes" && isPdf(media) ? cachedPages.get(media)?.count ?? pagesBySize(media.base64) : 1;
}

/** Returns whether a file is a PDF that may have more pages than `countPages` has found. */
export function mayHidePages(media: Media): boolean {
  return cachedPages.get(media)?.isPartial === true;
}

/** Estimates the tokens of an image by its size in pixels. */
export function imageTokens(base64: CharCodes): number {
  const size = imageSizeBase64(base64);
  if (size === undefined) return TOKENS_OF_UNKNOWN_MEDIA;
  const scale = Math.min(1, MAX_IMAGE_SIDE / Math.max(size.width, size.height));
  return Math.ceil(size.width * scale * size.height * scale / PIXELS_PER_TOKEN);
}

/** Estimates the tokens of a text of this many bytes. */
export function tokensOfBytes(bytes: number): number {
  return Math.ceil(bytes / BYTES_PER_TOKEN);
}

/** Returns the decoded size of padded base64, in bytes. */
export function base64Bytes(base64: string): number {
  const padding = Number(base64.endsWith("=")) + Number(base64.endsWith("=="));
  return Math.floor(base64.length * 3 / 4) - padding;
}
