/**
 * Estimates how many tokens a prompt or an answer has, from what a model reads of it.
 *
 * Texts are counted exactly under o200k_base: what is said, thought and refused, names and arguments of tool calls, tool
 * results, names, descriptions and schemas of tools, the schema of the answer, names of files, and the JSON of what only
 * one vendor knows. What stands between them is a rule of thumb: 3 tokens for each message, and 3 for the beginning of
 * the answer. Ids, citations, signatures and cache marks count nothing.
 *
 * Pictures count as Anthropic publishes it for its models: width times height, divided by 750, once the longer side has
 * been scaled down to 1,568 pixels. A picture whose size is not known, and anything at a URL, counts 1,600. Files of
 * `text/*` count as their UTF-8 text; all others one token for 4 bytes.
 */
import type { Block, Media, Prompt, Tool } from "../canonical/types.ts";
import type { JsonObject } from "../json.ts";
import { imageSizeBase64 } from "./image_size.ts";
import { atOnce, inSlices, turn } from "./pace.ts";
import { SHORT_TEXT, type TokenCounter } from "./tokens.ts";

const TOKENS_PER_MESSAGE = 3;
const TOKENS_OF_PRIMER = 3;
const MAX_IMAGE_SIDE = 1568;
const PIXELS_PER_TOKEN = 750;
const TOKENS_OF_UNKNOWN_MEDIA = 1600;
const BYTES_PER_TOKEN = 4;
/** What a part costs beside its characters, in characters: a prompt may have very many very short ones. */
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
  const fixed = TOKENS_OF_PRIMER + await tally.count(fixedParts(prompt));
  const messages: number[] = [];
  for (const { blocks } of prompt.messages) messages.push(TOKENS_PER_MESSAGE + await tally.count(blockParts(blocks)));
  return { fixed, messages };
}

/** Tokens of an answer: its texts, and the names and arguments of its tool calls. Nothing is added for its frame. */
export async function countReply(blocks: Block[], counter: TokenCounter): Promise<ReplyTokens> {
  const tally = new Tally(counter);
  const reasoning = await tally.count(blockParts(blocks.filter((block) => block.type === "reasoning")));
  const said = await tally.count(blockParts(blocks.filter((block) => block.type !== "reasoning")));
  return { completion: reasoning + said, reasoning };
}

/** A text, or media that count in their own way. */
type Part = string | Media;

/** Everything outside the messages. A generator, because writing large JSON takes time too: one piece per pause. */
function* fixedParts({ tools, format }: Prompt): Generator<Part> {
  for (const tool of tools) yield* toolParts(tool);
  if (format?.type !== "json_schema") return;
  if (format.name !== undefined) yield format.name;
  if (format.description !== undefined) yield format.description;
  yield json(format.schema);
}

function* toolParts(tool: Tool): Generator<Part> {
  if (tool.type === "hosted") {
    yield json(tool.value);
    return;
  }
  yield tool.name;
  if (tool.namespace !== undefined) yield tool.namespace;
  if (tool.description !== undefined) yield tool.description;
  const schema = tool.type === "function" ? tool.parameters : tool.format;
  if (schema !== undefined) yield json(schema);
}

function* blockParts(blocks: Block[]): Generator<Part> {
  for (const block of blocks) {
    switch (block.type) {
      case "text":
      case "reasoning":
      case "refusal":
        yield block.text;
        break;
      case "media":
        if (block.name !== undefined) yield block.name;
        yield block.media;
        break;
      case "tool_call":
        yield block.name;
        if (block.namespace !== undefined) yield block.namespace;
        yield block.arguments;
        break;
      case "tool_result":
        yield* blockParts(block.blocks);
        break;
      case "foreign":
        yield json(block.value);
    }
  }
}

function json(value: JsonObject): string {
  return JSON.stringify(value);
}

/** Counts parts, and lets the event loop turn when it has counted for long. */
class Tally {
  readonly #counter: TokenCounter;
  /** Characters counted in this turn. */
  #effort = 0;

  constructor(counter: TokenCounter) {
    this.#counter = counter;
  }

  async count(parts: Iterable<Part>): Promise<number> {
    let sum = 0;
    for (const part of parts) {
      this.#effort += EFFORT_PER_PART + (typeof part === "string" ? part.length : 0);
      if (this.#effort > SHORT_TEXT) {
        this.#effort = 0;
        await turn();
      }
      sum += typeof part === "string" ? await this.#counter.countLong(part) : await this.#countMedia(part);
    }
    return sum;
  }

  async #countMedia(media: Media): Promise<number> {
    if (media.kind === "url") return TOKENS_OF_UNKNOWN_MEDIA;
    if (media.mediaType.startsWith("image/")) return imageTokens(media.base64);
    if (media.mediaType.startsWith("text/")) {
      const work = decodeText(media.base64);
      const text = media.base64.length <= SHORT_TEXT ? atOnce(work) : await inSlices(work);
      if (text !== undefined) return await this.#counter.countLong(text);
    }
    return Math.ceil(byteLength(media.base64) / BYTES_PER_TOKEN);
  }
}

function imageTokens(base64: string): number {
  const size = imageSizeBase64(base64);
  if (size === undefined) return TOKENS_OF_UNKNOWN_MEDIA;
  const scale = Math.min(1, MAX_IMAGE_SIDE / Math.max(size.width, size.height));
  return Math.ceil(size.width * scale * size.height * scale / PIXELS_PER_TOKEN);
}

function byteLength(base64: string): number {
  const padding = base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0;
  return Math.floor(base64.length * 3 / 4) - padding;
}

/** The UTF-8 text in base64, with pauses; undefined where it is not base64. */
function* decodeText(base64: string): Generator<void, string | undefined> {
  const decoder = new TextDecoder();
  let text = "";
  for (let start = 0; start < base64.length; start += DIGITS_PER_STEP) {
    const bytes = decodeBase64(base64.slice(start, start + DIGITS_PER_STEP));
    if (bytes === undefined) return undefined;
    text += decoder.decode(bytes, { stream: true });
    yield;
  }
  return text + decoder.decode();
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
