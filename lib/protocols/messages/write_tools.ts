/** Writes the tools and the tool choice of a messages request. */
import { writeCacheMark } from "../canonical/cache_mark.ts";
import { PARAMETER_NAMES } from "../canonical/parameter_names.ts";
import { structuredOutputSchema } from "../canonical/structured_schema.ts";
import type { Prompt, Tool } from "../canonical/types.ts";
import { ownMembers } from "../canonical/unknown_members.ts";
import type { JsonObject } from "../../json/mod.ts";
import { enforcesSchemas, type WriteTarget } from "../upstream_codec.ts";

/** Schema of a tool without parameters. */
const EMPTY_SCHEMA: JsonObject = { type: "object", properties: {} };

/** Writes the tools and the choice, for spreading, in steps. */
export function* writeTools(prompt: Prompt, target: WriteTarget): Generator<void, JsonObject> {
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
  const strict = tool.strict === true && enforcesSchemas(target);
  if (tool.strict === true && !strict) target.dropped.add(PARAMETER_NAMES[prompt.protocol].strict);
  const schema = tool.parameters ?? EMPTY_SCHEMA;
  return {
    ...ownMembers(tool),
    name: tool.name,
    ...(tool.description !== undefined && { description: tool.description }),
    // Schemas of clients of this protocol follow its rules already.
    input_schema: strict && prompt.protocol !== "messages" ? yield* structuredOutputSchema(schema) : schema,
    ...(strict && { strict }),
    ...writeCacheMark(tool),
  };
}

/** Writes the choice, for spreading. It has the flag that disables parallel calls, except `none`. */
function writeToolChoice(prompt: Prompt): JsonObject {
  const isSingleCall = prompt.parallelToolCalls === false;
  const choice = writeChoice(prompt.toolChoice);
  if (choice?.type === "none") return { tool_choice: choice };
  if (isSingleCall) return { tool_choice: { ...(choice ?? { type: "auto" }), disable_parallel_tool_use: true } };
  return choice === undefined ? {} : { tool_choice: choice };
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
