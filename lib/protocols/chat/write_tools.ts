/** Writes the tools and the tool choice of a chat request. */
import type { Prompt, Tool } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import { type ChoiceForms, writeToolChoice } from "../openai_settings.ts";
import { withMembers } from "./write_parts.ts";

/** Writes the tools and the options of their calls, for spreading. */
export function writeTools({ tools, toolChoice, parallelToolCalls }: Prompt): JsonObject {
  return {
    ...(tools.length > 0 && { tools: tools.map(writeTool) }),
    ...(toolChoice !== undefined && { tool_choice: writeToolChoice(toolChoice, tools, CHOICE_FORMS) }),
    ...(parallelToolCalls !== undefined && { parallel_tool_calls: parallelToolCalls }),
  };
}

function writeTool(tool: Tool): JsonObject {
  if (tool.type === "hosted") return tool.value;
  const { name, description } = tool;
  const common = { name, ...(description !== undefined && { description }) };
  const written: JsonObject = tool.type === "custom"
    ? { type: "custom", custom: { ...common, ...(tool.format !== undefined && { format: nestFormat(tool.format) }) } }
    : {
      type: "function",
      function: {
        ...common,
        ...(tool.parameters !== undefined && { parameters: tool.parameters }),
        ...(tool.strict !== undefined && { strict: tool.strict }),
      },
    };
  return withMembers(written, tool);
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
