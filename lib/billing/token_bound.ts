/** Upper bounds of a request's tokens and cost before its answer: budgets hold them, and limits reserve them. */
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
  mediaTokens,
  pagesOf,
  type PromptPart,
  TOKENS_OF_PRIMER,
  TOKENS_PER_MESSAGE,
  tokensOfBytes,
} from "./prompt_parts.ts";
import { INPUT_CLASSES, unitPrices } from "./price.ts";

// Vendors add text of their own around a prompt. These bounds exceed what they publish and what their templates show.
/** Most tokens around a whole prompt: dates, system texts, answer formats. */
const FRAME = 256;
/** Most tokens around all tools together. Anthropic's tool instructions have up to 804. */
const TOOLS_FRAME = 1024;
/** Most tokens around each message and each part of it: roles, ids, delimiters. */
const PART_FRAME = 16;

/**
 * Most tokens of an image of any size. Anthropic's largest has 4,784, Gemini's 2,240; OpenAI counts 1,536 patches at up
 * to 2.46 tokens each. The few models above that (tiles of gpt-4o-mini: 5,667 each) exceed their hold, at the
 * operator's cost.
 */
const IMAGE = 5000;

/** Expected output tokens if a request sets no maximum. Most answers are shorter. */
const USUAL_OUTPUT = 1024;

/** Smallest useful maximum of output tokens. */
export const MIN_OUTPUT = 256;

/** `affordableOutput` if output is free: more than any model writes. */
const ANY_OUTPUT = 1_000_000_000;

/** Bound of input and output tokens. */
export interface TokenBound {
  input: number;
  /** Total of all answers. */
  output: number;
}

/** Facts of a model that the bounds need. */
type ModelBounds = Pick<Model, "context_length" | "top_provider">;

/** Facts that the bounds of an input need in addition. */
export interface InputBounds extends ModelBounds {
  /** True if the vendor detects the type of a URL's content; absent: it accepts only images. */
  infersTypes?: boolean;
}

/**
 * The most tokens that a request can have. Byte-level tokenizers make at most one token per UTF-8 byte, so bytes bound
 * texts from above. Inputs that grow at the vendor (hosted tools, files at URLs) are bounded only by the context.
 * Linear in the prompt, without a tokenizer.
 * @param maxTokens the most tokens of an answer; absent: those that the prompt sets
 */
export function tokenBound(prompt: Prompt, model: InputBounds, maxTokens = prompt.maxTokens): TokenBound {
  const { top_provider } = model;
  const limit = top_provider.max_completion_tokens;
  const requested = maxTokens ?? limit;
  return {
    input: inputBound(prompt, model),
    output: (requested < limit ? requested : limit) * (prompt.n ?? 1),
  };
}

function inputBound(prompt: Prompt, { context_length: limit, infersTypes = false }: InputBounds): number {
  if (mayRunHostedTools(prompt)) return limit;
  if (prompt.plain !== undefined) {
    const tokens = plainInputBound(prompt, prompt.plain);
    return tokens < limit ? tokens : limit;
  }
  if (prompt.tools.some(({ type }) => type === "hosted")) return limit;
  let tokens = FRAME + (prompt.tools.length > 0 ? TOOLS_FRAME : 0) + unknownMemberBytes(prompt);
  for (const tool of prompt.tools) tokens += unknownMemberBytes(tool);
  for (const part of fixedParts(prompt)) tokens += boundOf(part, infersTypes);
  for (const message of prompt.messages) {
    tokens += PART_FRAME + unknownMemberBytes(message);
    for (const block of message.blocks) {
      // Only the id of a file stored at the vendor is known here.
      if (block.type === "vendor_specific" && (prompt.vendorState === true || hasFileAddress(block))) return limit;
      tokens += unknownMemberBytes(block);
    }
    for (const part of blockParts(message.blocks)) tokens += boundOf(part, infersTypes);
    if (tokens >= limit) return limit;
  }
  return tokens < limit ? tokens : limit;
}

/** True for a part whose size only the host at an address knows. Images have a bound of their own. */
function hasFileAddress({ value }: ContentBlockOf<"vendor_specific">): boolean {
  return addressesIn(value).some(({ name }) => name !== "image_url");
}

/** Bound of a plain prompt by its sizes in JSON, which has at least as many bytes as the text. */
function plainInputBound(
  prompt: Prompt,
  { textBytes, texts, messages, tools, signatures, images }: PlainSizes,
): number {
  const sealed = signatures === undefined ? 0 : signatures.bytes + PART_FRAME * signatures.count;
  let tokens = sealed + FRAME + (tools > 0 ? TOOLS_FRAME : 0) + unknownMemberBytes(prompt) + textBytes +
    PART_FRAME * (messages + texts);
  if (images !== undefined) tokens += (PART_FRAME + IMAGE) * images.count;
  for (const part of formatParts(prompt.format)) tokens += PART_FRAME + Buffer.byteLength(part);
  return tokens;
}

/** Most tokens of a part; infinite where only the context bounds it. */
function boundOf(part: PromptPart, infersTypes: boolean): number {
  if (typeof part === "string") return PART_FRAME + Buffer.byteLength(part);
  // The decrypted content is no longer than the sealed value.
  return PART_FRAME + (part.type === "sealed" ? part.value.length : mediaBound(part, infersTypes));
}

function mediaBound({ media, name }: ContentBlockOf<"media">, infersTypes: boolean): number {
  const modality = modalityOf(media, name);
  if (media.kind === "url") {
    const isImage = modality === "image" &&
      (!infersTypes || media.mediaType !== undefined || imageTypeOf(media.url) !== undefined);
    return isImage ? IMAGE : Infinity;
  }
  if (modality === "image") return IMAGE;
  const bytes = base64Bytes(media.base64);
  // Only text shows its length. A document may be compressed, but each page is read as an image and even the smallest
  // file has one.
  const looked = IMAGE * pagesOf(media);
  return modality === "text" || bytes > looked ? bytes : looked;
}

/** Bytes of vendor-specific members, which may contain text for the model. */
function unknownMemberBytes({ unknownMembers }: { unknownMembers?: Prompt["unknownMembers"] }): number {
  return unknownMembers === undefined ? 0 : Buffer.byteLength(JSON.stringify(unknownMembers.members));
}

/** The exact highest cost of these tokens: all input at its most expensive class. */
export function costBound({ input, output }: TokenBound, sheet: Readonly<PriceSheet>): Amount {
  return BigInt(input) * dearestInput(sheet) + BigInt(output) * unitPrices(sheet).completion;
}

function dearestInput(sheet: Readonly<PriceSheet>): Amount {
  const prices = unitPrices(sheet);
  let dearest = 0n;
  for (const name of INPUT_CLASSES) {
    if (prices[name] > dearest) dearest = prices[name];
  }
  return dearest;
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
 * The most output tokens per answer that the money pays for after the input, so that a small budget can still serve a
 * request without a maximum. May exceed what the model can write.
 * @returns undefined below `MIN_OUTPUT`
 */
export function affordableOutput({ available, inputTokens, sheet, n = 1 }: Affordable): number | undefined {
  const afterInput = available - BigInt(inputTokens) * dearestInput(sheet);
  if (afterInput < 0n) return undefined;
  const price = unitPrices(sheet).completion * BigInt(n);
  if (price === 0n || afterInput >= price * BigInt(ANY_OUTPUT)) return ANY_OUTPUT;
  const tokens = Number(afterInput / price);
  return tokens < MIN_OUTPUT ? undefined : tokens;
}

/** Estimated tokens of a request. */
export interface EstimatedTokens {
  input: number;
  /** With the requested output, or the usual one. */
  total: number;
}

/**
 * Cheap estimate that token limits reserve at the start of a request and correct at its end. The input is capped at the
 * model's context.
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
  const limit = top_provider.max_completion_tokens;
  const requested = prompt.maxTokens ?? USUAL_OUTPUT;
  return { input, total: input + (requested < limit ? requested : limit) * (prompt.n ?? 1) };
}
