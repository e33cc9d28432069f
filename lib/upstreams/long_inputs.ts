/**
 * JSON within JSON that takes long to read, arguments of tool calls and results of tools: read with turns for others,
 * before the prompt is written at once.
 */
import type { Block, Message, Prompt } from "../canonical/types.ts";
import { isObject, JsonError, type JsonObject } from "../json.ts";
import { readLongJson, SHORT_TEXT } from "../json_steps.ts";
import { turn } from "../pace.ts";
import { objectText } from "../protocols/gemini/results.ts";
import type { UpstreamProtocol } from "../protocols/upstream_codec.ts";

/** Protocols in which the input of a tool is an object; in the others it is text, as it is in the canonical form. */
const OBJECT_INPUTS: ReadonlySet<UpstreamProtocol> = new Set<UpstreamProtocol>(["messages", "gemini"]);

/** Longest time in which short texts are read one after the other, in milliseconds. */
const SLICE_MS = 8;

/**
 * The prompt with the `input` of its calls, and the `output` of results where the protocol wants objects of them too; the
 * same prompt where the protocol wants text, or all of them together are short. What is written of it is the same.
 */
export async function readLongInputs(prompt: Prompt, protocol: UpstreamProtocol): Promise<Prompt> {
  if (!OBJECT_INPUTS.has(protocol)) return prompt;
  const textOf = protocol === "gemini" ? textOfAny : textOfCall;
  let size = 0;
  for (const { blocks } of prompt.messages) {
    for (const block of blocks) size += textOf(block)?.length ?? 0;
  }
  if (size <= SHORT_TEXT) return prompt;

  const messages: Message[] = [];
  let end = performance.now() + SLICE_MS;
  for (const message of prompt.messages) {
    const blocks: Block[] = [];
    for (const block of message.blocks) {
      const text = textOf(block);
      if (performance.now() > end) {
        await turn();
        end = performance.now() + SLICE_MS;
      }
      blocks.push(text === undefined ? block : withObject(block, await readObject(text)));
    }
    messages.push(blocks.every((block, at) => block === message.blocks[at]) ? message : { ...message, blocks });
  }
  return { ...prompt, messages };
}

/** The text that is an object's in every protocol of objects. */
function textOfCall(block: Block): string | undefined {
  return block.type === "tool_call" && block.custom !== true ? block.arguments : undefined;
}

function textOfAny(block: Block): string | undefined {
  return block.type === "tool_result" ? objectText(block) : textOfCall(block);
}

function withObject(block: Block, object: JsonObject | null): Block {
  if (block.type === "tool_call") return { ...block, input: object };
  return block.type === "tool_result" ? { ...block, output: object } : block;
}

/** The object that JSON text says; null where it says none. */
async function readObject(text: string): Promise<JsonObject | null> {
  try {
    const { value } = await readLongJson(text);
    return isObject(value) ? value : null;
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return null;
  }
}
