/** Writes the tools and the tool choice of a chat request. */
import type { Prompt, Tool } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import { present } from "../members.ts";
import { type ChoiceForms, writeToolChoice } from "../openai_settings.ts";
import { withMembers } from "./write_parts.ts";

/** Writes the tools and the options of their calls, for spreading. */
export function writeTools({ tools, toolChoice, parallelToolCalls }: Prompt): JsonObject {
  return {
    ...(tools.length > 0 && { tools: tools.map(writeTool) }),
    ...present({
      tool_choice: toolChoice && writeToolChoice(toolChoice, tools, CHOICE_FORMS),
      parallel_tool_calls: parallelToolCalls,
    }),
  };
}

function writeTool(tool: Tool): JsonObject {
  if (tool.type === "hosted") return tool.value;
  const { type, name, description } = tool;
  const options = type === "custom"
    ? { format: tool.format && nestFormat(tool.format) }
    : { parameters: tool.parameters, strict: tool.strict };
  return withMembers({ type, [type]: { name, ...present({ description }), ...present(options) } }, tool);
}

/** Returns chat's form of a format, which has the members of a grammar in an inner object. */
function nestFormat(format: JsonObject): JsonObject {
  if (format.type !== "grammar") return format;
  const { type, syntax, definition, ...others } = format;
  return { type, ...others, grammar: { syntax, definition } };
}

const CHOICE_FORMS: ChoiceForms = {
  named: (name, custom) => custom ? { type: "custom", custom: { name } } : { type: "function", function: { name } },
  allowed: (choice) => ({ type: "allowed_tools", allowed_tools: choice }),
};
