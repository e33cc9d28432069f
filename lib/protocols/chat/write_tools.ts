/** Writes the tools and the tool choice of a chat request. */
import type { Tool, ToolChoice } from "../canonical/types.ts";
import type { Json, JsonObject } from "../../json/mod.ts";
import { type ChatWriteContext, ownUnknownMembers, withUnknownMembers, writeCache } from "./write_parts.ts";

/** Writes the tools and what belongs to them, for spreading. Vendors refuse a choice without tools. */
export function writeTools(context: ChatWriteContext): JsonObject {
  const { prompt, target } = context;
  const tools = prompt.tools.flatMap((tool) => writeTool(tool, context));
  if (tools.length === 0) {
    if (isDemand(prompt.toolChoice)) target.dropped.add("tool_choice");
    return {};
  }
  const choice = prompt.toolChoice && writeChoice(prompt.toolChoice, context);
  return {
    tools,
    ...(choice !== undefined && { tool_choice: choice }),
    ...(prompt.parallelToolCalls !== undefined && { parallel_tool_calls: prompt.parallelToolCalls }),
  };
}

/** True for a choice that has an effect without tools. */
function isDemand(choice: ToolChoice | undefined): boolean {
  return choice !== undefined && choice.type !== "auto" && choice.type !== "none";
}

function writeTool(tool: Tool, { target }: ChatWriteContext): JsonObject[] {
  const { dropped } = target;
  if (tool.type === "hosted") {
    if (tool.from === "chat") return [tool.value];
    dropped.add("tools");
    return [];
  }
  if (tool.namespace !== undefined) dropped.add("namespace");
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
  return [
    withUnknownMembers(
      { ...written, ...writeCache(tool.cache, target) },
      ownUnknownMembers(tool.unknownMembers, dropped),
    ),
  ];
}

/** Chat nests a grammar one level deeper than the flat form. */
function nestFormat(format: JsonObject): JsonObject {
  if (format.type !== "grammar") return format;
  const { type, syntax, definition, ...others } = format;
  return { type, ...others, grammar: { syntax, definition } };
}

function writeChoice(choice: ToolChoice, { prompt, target }: ChatWriteContext): Json | undefined {
  switch (choice.type) {
    case "auto":
    case "none":
    case "required":
      return choice.type;
    case "tool":
      return named(choice.name, choice.custom === true);
    case "allowed": {
      const custom = new Set(prompt.tools.flatMap((tool) => tool.type === "custom" ? [tool.name] : []));
      const tools = choice.names.map((name) => named(name, custom.has(name)));
      return { type: "allowed_tools", allowed_tools: { mode: choice.mode, tools } };
    }
    case "vendor_specific":
      if (choice.from === "chat") return choice.value;
      target.dropped.add("tool_choice");
      return undefined;
  }
}

function named(name: string, custom: boolean): JsonObject {
  return custom ? { type: "custom", custom: { name } } : { type: "function", function: { name } };
}
