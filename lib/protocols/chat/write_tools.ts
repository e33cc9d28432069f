/** Writes the tools and the tool choice of a chat request. */
import type { Prompt, Tool, ToolChoice } from "../canonical/types.ts";
import type { Json, JsonObject } from "../../json/mod.ts";
import { withMembers } from "./write_parts.ts";

/** Writes the tools and the options of their calls, for spreading. */
export function writeTools({ tools, toolChoice, parallelToolCalls }: Prompt): JsonObject {
  return {
    ...(tools.length > 0 && { tools: tools.map(writeTool) }),
    ...(toolChoice !== undefined && { tool_choice: writeChoice(toolChoice, tools) }),
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

function writeChoice(choice: ToolChoice, tools: readonly Tool[]): Json {
  switch (choice.type) {
    case "auto":
    case "none":
    case "required":
      return choice.type;
    case "tool":
      return namedChoice(choice.name, choice.custom === true);
    case "allowed": {
      const custom = new Set(tools.flatMap((tool) => tool.type === "custom" ? [tool.name] : []));
      const allowed = choice.names.map((name) => namedChoice(name, custom.has(name)));
      return { type: "allowed_tools", allowed_tools: { mode: choice.mode, tools: allowed } };
    }
    case "vendor_specific":
      return choice.value;
  }
}

function namedChoice(name: string, custom: boolean): JsonObject {
  return custom ? { type: "custom", custom: { name } } : { type: "function", function: { name } };
}
