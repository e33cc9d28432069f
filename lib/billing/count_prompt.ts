/**
 * Estimates the tokens of a prompt or an answer.
 *
 * Exact under o200k_base: texts, reasoning, refusals, names and arguments of tool calls, tool results, tool
 * definitions, the answer's schema, file names, and the JSON of vendor-specific blocks. The vendor's text around them
 * is estimated: 3 tokens per message, and 3 for the start of the answer. Ids, citations, signatures and cache marks
 * count nothing.
 *
 * Images count by Anthropic's published formula: width times height divided by 750, after scaling the longer side down
 * to 1,568 pixels. An image of unknown size, anything at a URL, and each page of a PDF count 1,600. `text/*` files
 * count as their UTF-8 text, all others one token per 4 bytes.
 */
import type { ContentBlock, Media, Prompt } from "../protocols/canonical/types.ts";
import { runSliced, runToEnd, yieldToEventLoop } from "../scheduler.ts";
import { utf8Decoder } from "../text.ts";
import {
  blockParts,
  countPages,
  fixedParts,
  mediaTokens,
  type PromptPart,
  TOKENS_OF_PRIMER,
  TOKENS_PER_MESSAGE,
} from "./prompt_parts.ts";
import { COUNTED_AT_ONCE, type TokenCounter } from "../o200k/mod.ts";

/** Fixed work per part, expressed as a number of characters: a prompt may have many short parts. */
const WORK_PER_PART = 64;
/** Base64 digits decoded between two pauses. Divisible by 4, because 4 digits make 3 bytes. */
const DIGITS_PER_STEP = 65_536;

/** Tokens of a prompt by message, from which the tokens of any shorter prefix can be added up. */
export interface PromptTokens {
  /** Tokens outside the messages: tools, answer format, and the start of the answer. */
  fixed: number;
  /** `messages[i]` is the number of tokens of `prompt.messages[i]`. */
  messages: number[];
}

/** Tokens of an answer. */
export interface ReplyTokens {
  /** All tokens, including those of reasoning. */
  completion: number;
  reasoning: number;
}

/**
 * Counts the tokens of a whole prompt. Yields to the event loop during long prompts.
 * @throws the signal's reason once it aborts
 */
export async function countPrompt(prompt: Prompt, counter: TokenCounter, signal?: AbortSignal): Promise<number> {
  let { fixed: sum, messages } = await countMessages(prompt, counter, signal);
  for (const tokens of messages) sum += tokens;
  return sum;
}

/**
 * Counts the tokens of a prompt by message. Yields to the event loop during long prompts.
 * @throws the signal's reason once it aborts
 */
export async function countMessages(
  prompt: Prompt,
  counter: TokenCounter,
  signal?: AbortSignal,
): Promise<PromptTokens> {
  const partCounter = new PartCounter(counter, signal);
  await countPages(prompt);
  const fixed = TOKENS_OF_PRIMER + await partCounter.count(fixedParts(prompt));
  const messages: number[] = [];
  for (const { blocks } of prompt.messages) {
    messages.push(TOKENS_PER_MESSAGE + await partCounter.count(blockParts(blocks)));
  }
  return { fixed, messages };
}

/**
 * Counts the tokens of an answer: its texts, and the names and arguments of its tool calls, and nothing around them.
 */
export async function countReply(blocks: ContentBlock[], counter: TokenCounter): Promise<ReplyTokens> {
  const partCounter = new PartCounter(counter);
  const reasoning = await partCounter.count(blockParts(blocks.filter((block) => block.type === "reasoning")));
  const visible = await partCounter.count(blockParts(blocks.filter((block) => block.type !== "reasoning")));
  return { completion: reasoning + visible, reasoning };
}

/** Counts parts, and yields to the event loop after every few milliseconds of work. */
class PartCounter {
  readonly #counter: TokenCounter;
  readonly #signal: AbortSignal | undefined;
  /** Work since the last yield, in characters. */
  #workSinceYield = 0;

  constructor(counter: TokenCounter, signal?: AbortSignal) {
    this.#counter = counter;
    this.#signal = signal;
  }

  async count(parts: Iterable<PromptPart>): Promise<number> {
    let sum = 0;
    for (const part of parts) {
      // `countLong` itself yields during longer texts.
      const length = typeof part === "string" && part.length <= COUNTED_AT_ONCE ? part.length : 0;
      this.#workSinceYield += WORK_PER_PART + length;
      if (this.#workSinceYield > COUNTED_AT_ONCE) {
        this.#workSinceYield = 0;
        await yieldToEventLoop();
        this.#signal?.throwIfAborted();
      }
      if (typeof part === "string") sum += await this.#counter.countLong(part, this.#signal);
      else if (part.type === "media") sum += await this.#countMedia(part.media);
    }
    return sum;
  }

  async #countMedia(media: Media): Promise<number> {
    if (media.kind === "bytes" && media.mediaType.startsWith("text/")) {
      const work = decodeText(media.base64);
      const text = media.base64.length <= COUNTED_AT_ONCE ? runToEnd(work) : await runSliced(work, this.#signal);
      if (text !== undefined) return await this.#counter.countLong(text, this.#signal);
    }
    return mediaTokens(media);
  }
}

/** Decodes base64 as UTF-8, with pauses. Returns undefined if it is not base64. */
function* decodeText(base64: string): Generator<void, string | undefined> {
  const decode = utf8Decoder();
  let text = "";
  for (let start = 0; start < base64.length; start += DIGITS_PER_STEP) {
    const bytes = decodeBase64(base64.slice(start, start + DIGITS_PER_STEP));
    if (bytes === undefined) return undefined;
    text += decode(bytes);
    yield;
  }
  return text + decode();
}

function decodeBase64(base64: string): Uint8Array<ArrayBuffer> | undefined {
  let binary: string;
  try {
    binary = atob(base64);
  } catch {
    return undefined;
  }
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}
