/**
 * Computes upper bounds of a request's tokens and cost before its answer, for budget holds, and an estimate of its
 * tokens, for limits.
 */
import { Buffer } from "node:buffer";
import { addressesIn, imageTypeOf, modalityOf } from "../protocols/canonical/media.ts";
import { type ContentBlockOf, mayRunHostedTools, type PlainSizes, type Prompt } from "../protocols/canonical/types.ts";
import type { Model } from "../catalog/model.ts";
import type { PriceSheet } from "../store/ledger.ts";
import type { Amount } from "./money.ts";
import {
  base64Bytes,
  blockParts,
  fixedParts,
  formatParts,
  imageTokens,
  isPdf,
  mayHidePages,
  mediaTokens,
  pagesOf,
  type PromptPart,
  TOKENS_OF_PRIMER,
  TOKENS_PER_MESSAGE,
  tokensOfBytes,
} from "./prompt_parts.ts";
import { highestInputPrice, type TokenBound, unitPrices } from "./price.ts";
import { unzippedBytes } from "./zip_size.ts";

// Vendors add text of their own to a prompt. These bounds exceed the numbers that they publish and their known
// templates.
/** Maximum number of tokens that are added to a whole prompt: dates, system texts, answer formats. */
const PROMPT_FRAME_TOKENS = 256;
/** Maximum number of tokens that are added for all tools together. Anthropic's tool instructions have up to 804. */
const TOOLS_FRAME_TOKENS = 1024;
/** Maximum number of tokens that are added to each message and each part of it: roles, ids, delimiters. */
const PART_FRAME_TOKENS = 16;

/**
 * Maximum number of tokens of an image of any size. Anthropic's largest has 4,784, Gemini's 2,240; OpenAI counts 1,536
 * patches at up to 2.46 tokens each. The operator pays for the few models above that, such as gpt-4o-mini with 5,667
 * tokens per tile, as far as they exceed the hold.
 */
const MAX_IMAGE_TOKENS = 5000;

/** Expected output tokens if a request sets no maximum. Most answers are shorter. */
const USUAL_OUTPUT_TOKENS = 1024;

/** Minimum number of output tokens for which a request is shortened to fit its budget; below that it is refused. */
export const MIN_OUTPUT = 256;

/** Result of `affordableOutput` if output is free: more tokens than any model writes. */
const UNLIMITED_OUTPUT = 1_000_000_000;

type ModelBounds = Pick<Model, "context_length" | "top_provider">;

/** Facts that the bounds of an input need in addition. */
export interface InputBounds extends ModelBounds {
  /** True if the vendor detects the type of a URL's content; absent: it accepts only images. */
  infersTypes?: boolean;
}

/**
 * Returns the most tokens that a request can have, without a tokenizer. Byte-level tokenizers make at most one token
 * per UTF-8 byte, so the bytes of a text are an upper bound. An input that may grow at the vendor (hosted tools, files
 * at URLs, videos, the client's own chat template or image processing) is bounded only by the context of the model.
 * @param maxTokens the most tokens of an answer; absent: those that the prompt sets
 */
export function tokenBound(prompt: Prompt, model: InputBounds, maxTokens = prompt.maxTokens): TokenBound {
  const { top_provider } = model;
  const maxOutput = top_provider.max_completion_tokens;
  const requested = maxTokens ?? maxOutput;
  return {
    input: maxInput(prompt, model),
    output: (requested < maxOutput ? requested : maxOutput) * (prompt.n ?? 1),
  };
}

function maxInput(prompt: Prompt, { context_length: limit, infersTypes = false }: InputBounds): number {
  if (mayRunHostedTools(prompt) || hasOwnRendering(prompt)) return limit;
  if (prompt.plain !== undefined) {
    const tokens = maxPlainInput(prompt, prompt.plain);
    return tokens < limit ? tokens : limit;
  }
  if (prompt.tools.some(({ type }) => type === "hosted")) return limit;
  let tokens = PROMPT_FRAME_TOKENS + (prompt.tools.length > 0 ? TOOLS_FRAME_TOKENS : 0) + unknownMemberBytes(prompt);
  for (const tool of prompt.tools) tokens += unknownMemberBytes(tool);
  for (const part of fixedParts(prompt)) tokens += maxTokensOf(part, infersTypes);
  for (const message of prompt.messages) {
    tokens += PART_FRAME_TOKENS + unknownMemberBytes(message);
    for (const block of message.blocks) {
      // A file that is stored at the vendor is known here only by its id.
      if (block.type === "vendor_specific" && (prompt.vendorState === true || hasFileAddress(block))) return limit;
      tokens += unknownMemberBytes(block);
    }
    for (const part of blockParts(message.blocks)) tokens += maxTokensOf(part, infersTypes);
    if (tokens >= limit) return limit;
  }
  return tokens < limit ? tokens : limit;
}

/**
 * Returns whether a block refers to a file at a URL, whose size is unknown. Images at URLs have a bound of their own.
 */
function hasFileAddress({ value }: ContentBlockOf<"vendor_specific">): boolean {
  return addressesIn(value).some(({ name }) => name !== "image_url");
}

/**
 * Returns whether the client decides how vLLM makes tokens of its input: by a chat template, which can repeat a text any
 * number of times, or by settings of the processor, such as the resolution of images.
 */
function hasOwnRendering({ unknownMembers }: Prompt): boolean {
  const { chat_template, mm_processor_kwargs } = unknownMembers?.members ?? {};
  return chat_template !== undefined || mm_processor_kwargs !== undefined;
}

/** Returns the bound of a plain prompt by the sizes of its JSON, which has at least as many bytes as the text. */
function maxPlainInput(prompt: Prompt, { textBytes, texts, messages, tools, signatures, images }: PlainSizes): number {
  const sealed = signatures === undefined ? 0 : signatures.bytes + PART_FRAME_TOKENS * signatures.count;
  let tokens = sealed + PROMPT_FRAME_TOKENS + (tools > 0 ? TOOLS_FRAME_TOKENS : 0) + unknownMemberBytes(prompt) +
    textBytes +
    PART_FRAME_TOKENS * (messages + texts);
  if (images !== undefined) tokens += (PART_FRAME_TOKENS + MAX_IMAGE_TOKENS) * images.count;
  for (const part of formatParts(prompt.format)) tokens += PART_FRAME_TOKENS + Buffer.byteLength(part);
  return tokens;
}

/** Returns the most tokens of a part; infinite if only the context of the model bounds it. */
function maxTokensOf(part: PromptPart, infersTypes: boolean): number {
  if (typeof part === "string") return PART_FRAME_TOKENS + Buffer.byteLength(part);
  // The decrypted content is no longer than the sealed value.
  return PART_FRAME_TOKENS + (part.type === "sealed" ? part.value.length : maxTokensOfMedia(part, infersTypes));
}

function maxTokensOfMedia({ media, name }: ContentBlockOf<"media">, infersTypes: boolean): number {
  const modality = modalityOf(media, name);
  if (media.kind === "url") {
    const isImage = modality === "image" &&
      (!infersTypes || media.mediaType !== undefined || imageTypeOf(media.url) !== undefined);
    return isImage ? MAX_IMAGE_TOKENS : Infinity;
  }
  if (modality === "image" && !isPdf(media)) return MAX_IMAGE_TOKENS;
  // A few bytes can show one picture for hours, and vendors read a picture per second.
  if (modality === "video" || mayHidePages(media)) return Infinity;
  const [sentBytes, unpackedBytes = 0] = [base64Bytes(media.base64), unzippedBytes(media)];
  // A text may look like an empty archive.
  const bytes = unpackedBytes > sentBytes ? unpackedBytes : sentBytes;
  // Only the bytes of a text show its length; a PDF may be compressed. But each page is read as an image, and even the
  // smallest document has one page.
  const tokensAsImages = MAX_IMAGE_TOKENS * pagesOf(media);
  return modality === "text" || bytes > tokensAsImages ? bytes : tokensAsImages;
}

/** Returns the bytes of vendor-specific members, which may contain text for the model. */
function unknownMemberBytes({ unknownMembers }: { unknownMembers?: Prompt["unknownMembers"] }): number {
  return unknownMembers === undefined ? 0 : Buffer.byteLength(JSON.stringify(unknownMembers.members));
}

/** Available money and what it must pay for. */
export interface Affordable {
  available: Amount;
  /** Upper bound of the input tokens. */
  inputTokens: number;
  sheet: Readonly<PriceSheet>;
  /** Number of answers; absent: 1. */
  n?: number;
}

/**
 * Returns the most output tokens per answer that the money pays for besides the input, so that a small budget can still
 * serve a request without a maximum. The result may exceed what the model can write.
 * @returns undefined below `MIN_OUTPUT`
 */
export function affordableOutput({ available, inputTokens, sheet, n = 1 }: Affordable): number | undefined {
  const remaining = available - BigInt(inputTokens) * highestInputPrice(sheet);
  if (remaining < 0n) return undefined;
  const price = unitPrices(sheet).completion * BigInt(n);
  if (price === 0n || remaining >= price * BigInt(UNLIMITED_OUTPUT)) return UNLIMITED_OUTPUT;
  const tokens = Number(remaining / price);
  return tokens < MIN_OUTPUT ? undefined : tokens;
}

/** Estimated tokens of a request. */
export interface EstimatedTokens {
  input: number;
  /** Input plus the requested maximum of output, or plus the usual output if there is none. */
  total: number;
}

/**
 * Estimates the tokens of a request by sizes, without a tokenizer. Token limits reserve this number at the start of a
 * request and correct it at its end. The input is at most the model's context.
 */
export function estimateTokens(
  prompt: Prompt,
  { top_provider, context_length }: ModelBounds,
): EstimatedTokens {
  const { plain } = prompt;
  let bytes = plain?.textBytes ?? 0;
  let input = TOKENS_OF_PRIMER + TOKENS_PER_MESSAGE * (plain === undefined ? prompt.messages.length : plain.messages);
  const add = (part: PromptPart) => {
    if (typeof part === "string") bytes += Buffer.byteLength(part);
    else if (part.type === "media") input += mediaTokens(part.media);
  };
  if (plain === undefined) {
    for (const part of fixedParts(prompt)) add(part);
    for (const { blocks } of prompt.messages) {
      // Most contents are a single text.
      const [first] = blocks;
      if (blocks.length === 1 && first?.type === "text") add(first.text);
      else for (const part of blockParts(blocks)) add(part);
    }
  } else {
    for (const part of formatParts(prompt.format)) add(part);
    if (plain.images !== undefined) { for (const base64 of plain.images.read()) input += imageTokens(base64); }
  }
  input += tokensOfBytes(bytes);
  if (input > context_length) input = context_length;
  const maxOutput = top_provider.max_completion_tokens;
  const requested = prompt.maxTokens ?? USUAL_OUTPUT_TOKENS;
  return { input, total: input + (requested < maxOutput ? requested : maxOutput) * (prompt.n ?? 1) };
}
