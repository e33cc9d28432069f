/** Arguments of tool calls that take long to read: read with turns for others, before the prompt is written at once. */
import type { Block, Message, Prompt } from "../canonical/types.ts";
import { isObject, JsonError, type JsonObject } from "../json.ts";
import { readLongJson, SHORT_TEXT } from "../json_steps.ts";
import type { UpstreamProtocol } from "../protocols/upstream_codec.ts";

/** Protocols in which the input of a tool is an object; in the others it is text, as it is in the canonical form. */
const OBJECT_INPUTS: ReadonlySet<UpstreamProtocol> = new Set<UpstreamProtocol>(["messages", "gemini"]);

/**
 * The prompt with the `input` of its calls that have long arguments; the same prompt where there are none, and where the
 * protocol wants them as text. What is written of it is the same.
 */
export async function readLongInputs(prompt: Prompt, protocol: UpstreamProtocol): Promise<Prompt> {
  if (!OBJECT_INPUTS.has(protocol) || !prompt.messages.some(({ blocks }) => blocks.some(isLong))) return prompt;
  const messages: Message[] = [];
  for (const message of prompt.messages) {
    messages.push(message.blocks.some(isLong) ? { ...message, blocks: await readAll(message.blocks) } : message);
  }
  return { ...prompt, messages };
}

function isLong(block: Block): boolean {
  return block.type === "tool_call" && block.arguments.length > SHORT_TEXT && block.custom !== true;
}

async function readAll(blocks: readonly Block[]): Promise<Block[]> {
  const all: Block[] = [];
  for (const block of blocks) {
    const isCall = block.type === "tool_call" && isLong(block);
    all.push(isCall ? { ...block, input: await readInput(block.arguments) } : block);
  }
  return all;
}

/** The object that JSON text says; null where it says none. */
async function readInput(text: string): Promise<JsonObject | null> {
  try {
    const { value } = await readLongJson(text);
    return isObject(value) ? value : null;
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return null;
  }
}
