/** Parses long JSON inside strings (tool arguments and results) in slices, before the synchronous encoder needs it. */
import type { ContentBlock, Prompt, Protocol, Reply } from "../protocols/canonical/types.ts";
import { isObject, JsonError, type JsonObject, parseDocument, writeEachSliced } from "../json/mod.ts";
import { LONG_TEXT_CHARS, yieldToEventLoop } from "../scheduler.ts";
import { objectOf, objectsOf } from "../protocols/members.ts";
import type { Origin, UpstreamCodec } from "../protocols/upstream_codec.ts";
import type { WholeAnswer } from "./answers.ts";
import { objectText } from "../protocols/gemini/write_function_responses.ts";

/** Protocols in which tool input is an object. In the others it is text, as in the canonical form. */
const OBJECT_INPUTS: ReadonlySet<Protocol> = new Set<Protocol>(["messages", "gemini"]);

/** Total length of inputs above which they are parsed in slices, in characters. */
const LONG_INPUTS_CHARS = 65_536;

/** Longest time without yielding to the event loop, in milliseconds. */
const SLICE_MS = 8;

/**
 * Adds parsed `input` to tool calls, and parsed `output` to results if the protocol needs objects. Returns the same prompt
 * if the protocol uses text or the texts are short. The encoded request is the same either way.
 */
export async function readLongInputs(prompt: Prompt, protocol: Protocol): Promise<Prompt> {
  if (!OBJECT_INPUTS.has(protocol)) return prompt;
  const textOf = protocol === "gemini" ? textOfAny : textOfCall;
  if (lengthOf(prompt.messages, textOf) <= LONG_INPUTS_CHARS) return prompt;
  return { ...prompt, messages: await readAll(prompt.messages, textOf) };
}

/** Adds parsed `input` to the tool calls of an answer for the client. */
export async function readLongCalls(reply: Reply, protocol: Protocol): Promise<Reply> {
  if (!OBJECT_INPUTS.has(protocol) || lengthOf([reply], textOfCall) <= LONG_INPUTS_CHARS) return reply;
  const [read = reply] = await readAll([reply], textOfCall);
  return read;
}

/**
 * Reads a whole answer. Tool inputs, which are text in the canonical form, are written in slices if the answer is long.
 * @throws {GatewayError} as `UpstreamCodec.readReply`
 */
export async function readReply({ text, value }: WholeAnswer, codec: UpstreamCodec, origin: Origin): Promise<Reply> {
  if (text.length <= LONG_TEXT_CHARS) return codec.readReply(value, origin);
  return codec.readReply(value, { ...origin, texts: await writeEachSliced(inputsOf(value, codec.protocol)) });
}

function inputsOf(answer: JsonObject, protocol: Protocol): JsonObject[] {
  switch (protocol) {
    case "messages":
      return objectsOf(answer.content).map(({ input }) => input).filter(isObject);
    case "gemini":
      return objectsOf(answer.candidates).flatMap(({ content }) => objectsOf(objectOf(content)?.parts))
        .map(({ functionCall }) => objectOf(functionCall)?.args).filter(isObject);
    default:
      return [];
  }
}

/** A message or a reply. */
type Holder = { blocks: ContentBlock[] };
/** Returns the text of a block that must become an object; undefined if there is none. */
type TextOf = (block: ContentBlock) => string | undefined;

function lengthOf(holders: readonly Holder[], textOf: TextOf): number {
  let length = 0;
  for (const { blocks } of holders) {
    for (const block of blocks) length += textOf(block)?.length ?? 0;
  }
  return length;
}

/** Parses the texts of all blocks. Holders without such texts are returned unchanged. */
async function readAll<T extends Holder>(holders: readonly T[], textOf: TextOf): Promise<T[]> {
  const results: T[] = [];
  let end = performance.now() + SLICE_MS;
  for (const holder of holders) {
    const blocks: ContentBlock[] = [];
    for (const block of holder.blocks) {
      const text = textOf(block);
      if (performance.now() > end) {
        await yieldToEventLoop();
        end = performance.now() + SLICE_MS;
      }
      blocks.push(text === undefined ? block : withObject(block, await readObject(text)));
    }
    results.push(blocks.every((block, index) => block === holder.blocks[index]) ? holder : { ...holder, blocks });
  }
  return results;
}

/** Returns the arguments of a tool call. Protocols with object inputs need them as an object. */
function textOfCall(block: ContentBlock): string | undefined {
  return block.type === "tool_call" && block.custom !== true ? block.arguments : undefined;
}

function textOfAny(block: ContentBlock): string | undefined {
  return block.type === "tool_result" ? objectText(block) : textOfCall(block);
}

function withObject(block: ContentBlock, object: JsonObject | null): ContentBlock {
  if (block.type === "tool_call") return { ...block, input: object };
  return block.type === "tool_result" ? { ...block, output: object } : block;
}

/** Parses an object; returns null for anything else. */
async function readObject(text: string): Promise<JsonObject | null> {
  try {
    const { value } = await parseDocument(text);
    return isObject(value) ? value : null;
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return null;
  }
}
