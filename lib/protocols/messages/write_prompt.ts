/** Writes the body of a messages request. */
import { PARAMETER_NAMES } from "../canonical/parameter_names.ts";
import type { OutputFormat, Prompt, Tool } from "../canonical/types.ts";
import { ownMembers } from "../canonical/unknown_members.ts";
import type { Model } from "../../catalog/model.ts";
import { type JsonObject, writeJson } from "../../json/mod.ts";
import { objectOf, present, someOf } from "../members.ts";
import { enforcesSchemas, type WriteTarget } from "../upstream_codec.ts";
import { writeMessages } from "./write_messages.ts";
import { isThinking, writeThinking } from "./write_thinking.ts";
import { writeCacheMark } from "../canonical/cache_mark.ts";
import { needsOpenObjects, structuredOutputSchema } from "../canonical/structured_schema.ts";

/**
 * Writes the body of `POST /v1/messages`, in steps. The body of a client of this protocol is only normalized: defaults
 * and nulls are omitted, single texts are strings, images in `data:` URLs are bytes, `output_format` is
 * `output_config.format`, and empty messages are dropped.
 * @throws {GatewayError} `invalid`, for content that is not supported and must not be dropped
 */
export function* writePrompt(prompt: Prompt, target: WriteTarget): Generator<void, JsonObject> {
  const { output_config, metadata, ...own } = ownMembers(prompt);
  const maxCompletionTokens = target.row.top_provider.max_completion_tokens;
  const maxTokens = Math.min(prompt.maxTokens ?? defaultMaxTokens(target.row), maxCompletionTokens);
  const { thinking, effort } = writeThinking({ prompt, target, maxTokens });
  const { format, lines } = writeFormat(prompt, target);
  const config = someOf({ ...objectOf(output_config), ...present({ effort, format }) });
  const newMetadata = someOf({ ...objectOf(metadata), ...present({ user_id: prompt.user }) });
  return {
    ...own,
    model: target.model,
    max_tokens: maxTokens,
    ...yield* writeMessages(prompt, { target, lines }),
    ...yield* writeTools(prompt, target),
    ...(thinking !== undefined && { thinking }),
    ...writeSampling(prompt, { target, thinking: isThinking(thinking) }),
    ...(prompt.stop.length > 0 && { stop_sequences: prompt.stop }),
    ...(prompt.stream && { stream: true }),
    ...present({ output_config: config, metadata: newMetadata }),
  };
}

/**
 * Writes the format: as a member, or as lines of the system prompt. A model without structured output gets the schema
 * as text, and so does every model if the vendor cannot express the schema. Both are added to `dropped`. JSON without a
 * schema is always requested as text.
 */
function writeFormat(prompt: Prompt, target: WriteTarget): { format?: JsonObject; lines: string[] } {
  const { format, protocol } = prompt;
  switch (format?.type) {
    case undefined:
    case "text":
      return { lines: [] };
    case "json_object":
      return { lines: ["Answer with one JSON object and nothing else."] };
    case "json_schema": {
      if (!enforcesSchemas(target) || format.inWords === true) {
        target.dropped.add(PARAMETER_NAMES[protocol].format);
        return { lines: [schemaLine(format)] };
      }
      // The protocol has no other place for a description of the answer.
      const { schema, description } = format;
      const described = description === undefined ? schema : { description, ...schema };
      return { format: { type: "json_schema", schema: described }, lines: [] };
    }
  }
}

function schemaLine({ schema, description }: Extract<OutputFormat, { type: "json_schema" }>): string {
  const what = description === undefined ? "" : ` (${description})`;
  return `Answer with JSON${what} that is valid by this JSON Schema, and nothing else:\n${writeJson(schema)}`;
}

/** Limit if neither the client nor the catalog sets one. Every current model of Anthropic supports it. */
const DEFAULT_MAX_TOKENS = 8192;

/** Returns the limit of a request without one. A model whose limit is its whole context has no limit of its own. */
function defaultMaxTokens({ top_provider: { max_completion_tokens: limit }, context_length: context }: Model): number {
  return limit < context ? limit : Math.min(limit, DEFAULT_MAX_TOKENS);
}

/** The highest temperature. Higher ones are lowered to it; scaling would change the meaning of 1. */
const MAX_TEMPERATURE = 1;

/**
 * Writes temperature, top_p and top_k if the model accepts them. The protocol has no other sampling parameters.
 * @param thinking whether the model thinks, with which Anthropic accepts no sampling parameters
 */
function writeSampling(
  { sampling }: Prompt,
  { target, thinking }: { target: WriteTarget; thinking: boolean },
): JsonObject {
  const { row, dropped } = target;
  const { frequencyPenalty, presencePenalty, seed, logitBias } = sampling;
  if (frequencyPenalty !== undefined) dropped.add("frequency_penalty");
  if (presencePenalty !== undefined) dropped.add("presence_penalty");
  if (seed !== undefined) dropped.add("seed");
  if (logitBias !== undefined) dropped.add("logit_bias");
  const members: JsonObject = {};

  function write(name: string, value: number | undefined): void {
    if (value === undefined) return;
    // 1 is the default of temperature and top_p, so dropping it loses nothing.
    const isDefault = value === 1 && name !== "top_k";
    if (row.supported_parameters.includes(name) && !thinking) members[name] = value;
    else if (!isDefault) dropped.add(name);
  }

  const { temperature, topP, topK } = sampling;
  if (temperature !== undefined && temperature > MAX_TEMPERATURE) dropped.add("temperature");
  write("temperature", temperature === undefined ? undefined : Math.min(temperature, MAX_TEMPERATURE));
  if (members.temperature !== undefined && topP !== undefined && row.features?.exclusive_sampling === true) {
    if (topP !== 1) dropped.add("top_p");
  } else {
    write("top_p", topP);
  }
  write("top_k", topK);
  return members;
}

const EMPTY_SCHEMA: JsonObject = { type: "object", properties: {} };

/** Writes the tools and the choice, for spreading, in steps. */
function* writeTools(prompt: Prompt, target: WriteTarget): Generator<void, JsonObject> {
  const tools: JsonObject[] = [];
  for (const tool of prompt.tools) tools.push(yield* writeTool(tool, { prompt, target }));
  return tools.length === 0 ? {} : { tools, ...writeToolChoice(prompt) };
}

function* writeTool(
  tool: Tool,
  { prompt, target }: { prompt: Prompt; target: WriteTarget },
): Generator<void, JsonObject> {
  if (tool.type === "hosted") return tool.value;
  if (tool.type === "custom") throw new TypeError("Cannot write a custom tool: this protocol has none");
  const schema = tool.parameters ?? EMPTY_SCHEMA;
  // Schemas of clients of this protocol follow its rules already.
  const isForeign = prompt.protocol !== "messages";
  const strict = tool.strict === true && enforcesSchemas(target) && !(isForeign && (yield* needsOpenObjects(schema)));
  if (tool.strict === true && !strict) target.dropped.add(PARAMETER_NAMES[prompt.protocol].strict);
  return {
    ...ownMembers(tool),
    name: tool.name,
    ...(tool.description !== undefined && { description: tool.description }),
    input_schema: strict && isForeign ? yield* structuredOutputSchema(schema) : schema,
    ...(strict && { strict }),
    ...writeCacheMark(tool),
  };
}

/** Writes the choice, for spreading. It has the flag that disables parallel calls, except `none`. */
function writeToolChoice(prompt: Prompt): JsonObject {
  const choice = writeChoice(prompt.toolChoice);
  if (prompt.parallelToolCalls !== false || choice?.type === "none") return present({ tool_choice: choice });
  return { tool_choice: { ...(choice ?? { type: "auto" }), disable_parallel_tool_use: true } };
}

function writeChoice(choice: Prompt["toolChoice"]): JsonObject | undefined {
  switch (choice?.type) {
    case undefined:
      return undefined;
    case "auto":
    case "none":
      return { type: choice.type };
    case "required":
      return { type: "any" };
    case "tool":
      return { type: "tool", name: choice.name };
    case "allowed":
      return { type: choice.mode === "required" ? "any" : "auto" };
    case "vendor_specific":
      throw new TypeError("Cannot write a vendor's own choice: this protocol has none");
  }
}
