/** Replaces custom tools by functions with one argument, `input`, for upstreams without free-form tools. */
import { type ContentBlock, deltaOf, type EventTransform, type Prompt, type Tool } from "../canonical/types.ts";
import { type JsonObject, writeJson } from "../../json/mod.ts";
import { inputDecoder } from "./input_decoder.ts";
import { mapPrompt } from "./map_blocks.ts";

/** Turns custom tools, their past calls and results, and a choice of a custom tool into those of functions. */
export function* wrapCustomTools(prompt: Prompt): Generator<void, Prompt> {
  const wrapBlock = (block: ContentBlock): ContentBlock => {
    if (block.type === "tool_call" && block.custom === true) {
      const { custom: _, ...call } = block;
      const input = { input: block.arguments };
      return { ...call, arguments: writeJson(input), input };
    }
    if (block.type === "tool_result" && block.custom === true) {
      const { custom: _, ...result } = block;
      return result;
    }
    return block;
  };
  const { toolChoice } = prompt;
  const wrapped = yield* mapPrompt(prompt, wrapBlock);
  if (toolChoice?.type !== "tool" && !prompt.tools.some(({ type }) => type === "custom")) return wrapped;
  return {
    ...wrapped,
    tools: prompt.tools.map((tool) => tool.type === "custom" ? wrapTool(tool) : tool),
    ...(toolChoice?.type === "tool" && { toolChoice: { type: "tool", name: toolChoice.name } }),
  };
}

function wrapTool({ type: _, description, format, ...tool }: Extract<Tool, { type: "custom" }>): Tool {
  return {
    ...tool,
    type: "function",
    description: [...(description ? [description] : []), describeInput(format)].join("\n\n"),
    parameters: {
      type: "object",
      properties: { input: { type: "string" } },
      required: ["input"],
      additionalProperties: false,
    },
  };
}

function describeInput({ type, syntax, definition }: JsonObject = {}): string {
  const freeForm = "The input is free-form text, not JSON.";
  if (type !== "grammar" || typeof definition !== "string") return freeForm;
  const kind = typeof syntax === "string" ? `${syntax} grammar` : "grammar";
  return `${freeForm} It must match this ${kind}:\n${definition}`;
}

/**
 * Creates a transform that unwraps calls marked `custom`: it passes on the text inside `{"input":"…"}` piece by piece,
 * and all other events unchanged.
 */
export function unwrapCustomCalls(): EventTransform {
  let decoder: ReturnType<typeof inputDecoder> | undefined;
  return (event) => {
    if (event.type === "open") {
      const isCustom = event.block.type === "tool_call" && event.block.custom === true;
      decoder = isCustom ? inputDecoder() : undefined;
    }
    if (decoder === undefined) return [event];
    if (event.type === "delta") return deltaOf(event.index, decoder.push(event.text));
    if (event.type !== "close") return [event];
    const events = [...deltaOf(event.index, decoder.end()), event];
    decoder = undefined;
    return events;
  };
}
