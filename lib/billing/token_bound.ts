/** Upper bounds of a request's tokens and cost before its answer: budgets hold them, and limits reserve them. */
import { Buffer } from "node:buffer";
import { imageTypeOf, modalityOf } from "../protocols/canonical/media.ts";
import { type ContentBlockOf, mayRunHostedTools, type PlainSizes, type Prompt } from "../protocols/canonical/types.ts";
import type { Model } from "../catalog/model.ts";
import type { PriceSheet } from "../store/ledger.ts";
import type { Amount } from "./money.ts";
import {
  base64Bytes,
  blockParts,
  fixedParts,
  formatParts,
  mediaTokens,
  pagesOf,
  type PromptPart,
  TOKENS_OF_PRIMER,
  TOKENS_PER_MESSAGE,
  tokensOfBytes,
} from "./prompt_parts.ts";
import { INPUT_CLASSES, PRICE_CLASSES, unitPrices } from "./price.ts";

// Vendors put words of their own around a prompt. What they publish, or their templates show, is less than this.
/** Most tokens around a whole prompt: dates, identities, forms of the answer. */
const FRAME = 256;
/** Most tokens around all tools together. Anthropic's text about the use of tools has up to 804. */
const TOOLS_FRAME = 1024;
/** Most tokens around each message, and around each part of it: roles, ids, beginnings and ends. */
const PART_FRAME = 16;

/**
 * Most tokens of an image, of any size. Anthropic's largest has 4,784 and Gemini's 2,240; of OpenAI's 1536 patches, each
 * is up to 2.46. Models that take more (tiles of gpt-4o-mini, at 5,667 each) go beyond their hold, at the house's cost.
 */
const IMAGE = 5000;

/** Tokens that are expected of an answer whose request names no maximum. Most are shorter. */
const USUAL_OUTPUT = 1024;

/** An answer that may have fewer tokens is not worth asking for. */
export const LEAST_OUTPUT = 256;

/** Result of `affordableOutput` without a limit: more than any model writes. */
const ANY_OUTPUT = 1_000_000_000;

/** Tokens that go in and come out. */
export interface TokenBound {
  input: number;
  /** Of all answers together. */
  output: number;
}

/** Facts of a model that the bounds need. */
type ModelBounds = Pick<Model, "context_length" | "top_provider">;

/** Facts that the bounds of an input need in addition. */
export interface InputBounds extends ModelBounds {
  /** True where the vendor detects the type of a URL's content; absent: it takes images alone. */
  infersTypes?: boolean;
}

/**
 * The most tokens that a request can have. Every tokenizer that works on bytes makes at most one token of each byte of
 * UTF-8, so that bytes bound the texts from above. What an input can grow to at its vendor (tools that run there, files
 * at addresses) is bounded by the context alone. Linear in the prompt, without a tokenizer.
 *
 * @param maxTokens the most tokens of an answer; absent: those that the prompt asks for
 */
export function mostTokens(prompt: Prompt, model: InputBounds, maxTokens = prompt.maxTokens): TokenBound {
  const { top_provider } = model;
  const most = top_provider.max_completion_tokens;
  const asked = maxTokens ?? most;
  return {
    input: mostInput(prompt, model),
    output: (asked < most ? asked : most) * (prompt.n ?? 1),
  };
}

function mostInput(prompt: Prompt, { context_length: limit, infersTypes = false }: InputBounds): number {
  if (mayRunHostedTools(prompt)) return limit;
  if (prompt.plain !== undefined) {
    const tokens = mostPlainInput(prompt, prompt.plain);
    return tokens < limit ? tokens : limit;
  }
  if (prompt.tools.some(({ type }) => type === "hosted")) return limit;
  let tokens = FRAME + (prompt.tools.length > 0 ? TOOLS_FRAME : 0) + unknownMemberBytes(prompt);
  for (const tool of prompt.tools) tokens += unknownMemberBytes(tool);
  for (const part of fixedParts(prompt)) tokens += mostOf(part, infersTypes);
  for (const message of prompt.messages) {
    tokens += PART_FRAME + unknownMemberBytes(message);
    for (const block of message.blocks) {
      // Of a file that the vendor keeps, only its id is here.
      if (block.type === "vendor_specific" && prompt.vendorState === true) return limit;
      tokens += unknownMemberBytes(block);
    }
    for (const part of blockParts(message.blocks)) tokens += mostOf(part, infersTypes);
    if (tokens >= limit) return limit;
  }
  return tokens < limit ? tokens : limit;
}

/** JSON of a text has no fewer bytes than the text. */
function mostPlainInput(prompt: Prompt, { textBytes, texts, messages, tools, signatures }: PlainSizes): number {
  const sealed = signatures === undefined ? 0 : signatures.bytes + PART_FRAME * signatures.count;
  let tokens = sealed + FRAME + (tools > 0 ? TOOLS_FRAME : 0) + unknownMemberBytes(prompt) + textBytes +
    PART_FRAME * (messages + texts);
  for (const part of formatParts(prompt.format)) tokens += PART_FRAME + Buffer.byteLength(part);
  return tokens;
}

/** Most tokens of a part; infinite where only the context bounds it. */
function mostOf(part: PromptPart, infersTypes: boolean): number {
  if (typeof part === "string") return PART_FRAME + Buffer.byteLength(part);
  // The vendor unseals it: what is inside is no longer than what holds it.
  return PART_FRAME + (part.type === "sealed" ? part.value.length : mostOfMedia(part, infersTypes));
}

function mostOfMedia({ media, name }: ContentBlockOf<"media">, infersTypes: boolean): number {
  const modality = modalityOf(media, name);
  if (media.kind === "url") {
    const isImage = modality === "image" &&
      (!infersTypes || media.mediaType !== undefined || imageTypeOf(media.url) !== undefined);
    return isImage ? IMAGE : Infinity;
  }
  if (modality === "image") return IMAGE;
  const bytes = base64Bytes(media.base64);
  // Only text shows its length. A document may be packed, but each page of it is looked at, and even the smallest has one.
  const looked = IMAGE * pagesOf(media);
  return modality === "text" || bytes > looked ? bytes : looked;
}

/** Bytes of what only one vendor knows: some of it is text for the model. */
function unknownMemberBytes({ unknownMembers }: { unknownMembers?: Prompt["unknownMembers"] }): number {
  return unknownMembers === undefined ? 0 : Buffer.byteLength(JSON.stringify(unknownMembers.members));
}

/** The most that so many tokens cost: all of the input at its dearest class. Exact. */
export function mostCost({ input, output }: TokenBound, sheet: Readonly<PriceSheet>): Amount {
  return BigInt(input) * dearestInput(sheet) + BigInt(output) * unitPrices(sheet).completion;
}

/** Returns whether any token costs anything. */
export function costsAnything(sheet: Readonly<PriceSheet>): boolean {
  const prices = unitPrices(sheet);
  return PRICE_CLASSES.some((name) => prices[name] > 0n);
}

function dearestInput(sheet: Readonly<PriceSheet>): Amount {
  const prices = unitPrices(sheet);
  let dearest = 0n;
  for (const name of INPUT_CLASSES) {
    if (prices[name] > dearest) dearest = prices[name];
  }
  return dearest;
}

/** Available money, and what it pays for. */
export interface Affordable {
  left: Amount;
  /** Most tokens of the input. */
  inputTokens: number;
  sheet: Readonly<PriceSheet>;
  /** Number of answers; absent: one. */
  n?: number;
}

/**
 * How many tokens each answer may have so that the money pays for all of them after the input: for requests that name no
 * maximum, so that a small budget still answers. May be more than the model can write.
 * @returns undefined where it is less than `LEAST_OUTPUT`
 */
export function affordableOutput({ left, inputTokens, sheet, n = 1 }: Affordable): number | undefined {
  const rest = left - BigInt(inputTokens) * dearestInput(sheet);
  if (rest < 0n) return undefined;
  const price = unitPrices(sheet).completion * BigInt(n);
  if (price === 0n || rest >= price * BigInt(ANY_OUTPUT)) return ANY_OUTPUT;
  const tokens = Number(rest / price);
  return tokens < LEAST_OUTPUT ? undefined : tokens;
}

/** Tokens that are expected of a request. */
export interface EstimatedTokens {
  input: number;
  /** With the output that the request asks for, or the usual one. */
  total: number;
}

/**
 * What limits of tokens per minute take when a request begins: a cheap guess, corrected when it ends. No input is larger
 * than the model's context.
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
      // Most contents are one text, which needs no iterator.
      const [first] = blocks;
      if (blocks.length === 1 && first?.type === "text") add(first.text);
      else for (const part of blockParts(blocks)) add(part);
    }
  } else if (prompt.format !== undefined) {
    for (const part of formatParts(prompt.format)) add(part);
  }
  input += tokensOfBytes(bytes);
  if (input > context_length) input = context_length;
  const most = top_provider.max_completion_tokens;
  const asked = prompt.maxTokens ?? USUAL_OUTPUT;
  return { input, total: input + (asked < most ? asked : most) * (prompt.n ?? 1) };
}
