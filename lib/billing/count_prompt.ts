/**
 * Estimates how many tokens a prompt or an answer has, from what a model reads of it.
 *
 * Texts are counted exactly under o200k_base: what is said, thought and refused, names and arguments of tool calls, tool
 * results, names, descriptions and schemas of tools, the schema of the answer, names of files, and the JSON of what only
 * one vendor knows. What stands between them is a rule of thumb: 3 tokens for each message, and 3 for the beginning of
 * the answer. Ids, citations, signatures and cache marks count nothing.
 *
 * Images count as Anthropic publishes it for its models: width times height, divided by 750, once the longer side has
 * been scaled down to 1,568 pixels. An image whose size is not known, and anything at a URL, counts 1,600, and so does
 * each page of a PDF. Files of `text/*` count as their UTF-8 text; all others one token for 4 bytes.
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

/** Cost of a part in addition to its characters, in characters: a prompt may have very many short ones. */
const EFFORT_PER_PART = 64;
/** Base64 digits decoded between two pauses. Divisible by 4. */
const DIGITS_PER_STEP = 65_536;

/** Tokens of a prompt, divided so that a prompt with fewer messages can be counted without counting again. */
export interface PromptTokens {
  /** Tools, form of the answer, and the beginning of the answer. */
  fixed: number;
  /** At index i: the whole of `prompt.messages[i]`. */
  messages: number[];
}

/** Tokens of an answer. */
export interface ReplyTokens {
  /** All of it, reasoning included. */
  completion: number;
  reasoning: number;
}

/** Tokens of a prompt: `fixed` and all `messages` of `countMessages`. */
export async function countPrompt(prompt: Prompt, counter: TokenCounter): Promise<number> {
  const { fixed, messages } = await countMessages(prompt, counter);
  return messages.reduce((sum, tokens) => sum + tokens, fixed);
}

/** Tokens of a prompt by message. Gives other work a turn whenever the prompt is long. */
export async function countMessages(prompt: Prompt, counter: TokenCounter): Promise<PromptTokens> {
  const tally = new Tally(counter);
  await countPages(prompt);
  const fixed = TOKENS_OF_PRIMER + await tally.count(fixedParts(prompt));
  const messages: number[] = [];
  for (const { blocks } of prompt.messages) messages.push(TOKENS_PER_MESSAGE + await tally.count(blockParts(blocks)));
  return { fixed, messages };
}

/** Tokens of an answer: its texts, and the names and arguments of its tool calls. Nothing is added for its frame. */
export async function countReply(blocks: ContentBlock[], counter: TokenCounter): Promise<ReplyTokens> {
  const tally = new Tally(counter);
  const reasoning = await tally.count(blockParts(blocks.filter((block) => block.type === "reasoning")));
  const said = await tally.count(blockParts(blocks.filter((block) => block.type !== "reasoning")));
  return { completion: reasoning + said, reasoning };
}

/** Counts parts, and lets the event loop turn when it has counted for long. */
class Tally {
  readonly #counter: TokenCounter;
  /** Characters counted in this turn. */
  #effort = 0;

  constructor(counter: TokenCounter) {
    this.#counter = counter;
  }

  async count(parts: Iterable<PromptPart>): Promise<number> {
    let sum = 0;
    for (const part of parts) {
      // Those that are long give others a turn by themselves.
      const length = typeof part === "string" && part.length <= COUNTED_AT_ONCE ? part.length : 0;
      this.#effort += EFFORT_PER_PART + length;
      if (this.#effort > COUNTED_AT_ONCE) {
        this.#effort = 0;
        await yieldToEventLoop();
      }
      if (typeof part === "string") sum += await this.#counter.countLong(part);
      else if (part.type === "media") sum += await this.#countMedia(part.media);
    }
    return sum;
  }

  async #countMedia(media: Media): Promise<number> {
    if (media.kind === "bytes" && media.mediaType.startsWith("text/")) {
      const work = decodeText(media.base64);
      const text = media.base64.length <= COUNTED_AT_ONCE ? runToEnd(work) : await runSliced(work);
      if (text !== undefined) return await this.#counter.countLong(text);
    }
    return mediaTokens(media);
  }
}

/** The UTF-8 text in base64, with pauses; undefined where it is not base64. */
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
