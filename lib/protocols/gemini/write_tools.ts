import type { Prompt, Tool, ToolChoice } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import type { WriteTarget } from "../upstream_codec.ts";
import { NAMES } from "./parameter_names.ts";

/** Writes `tools` and `toolConfig`; neither if there is no tool. */
export function writeTools(prompt: Prompt, { dropped }: WriteTarget): JsonObject {
  if (prompt.parallelToolCalls === false) dropped.add(NAMES[prompt.protocol].parallel);
  const functionDeclarations = prompt.tools.flatMap((tool) => writeTool(tool, dropped));
  if (functionDeclarations.length === 0) {
    if (!["auto", "none", undefined].includes(prompt.toolChoice?.type)) dropped.add("tool_choice");
    return {};
  }
  const tools = { tools: [{ functionDeclarations }] };
  const choice = prompt.toolChoice;
  if (choice === undefined) return tools;
  const config = writeChoice(choice);
  if (config === undefined) {
    dropped.add("tool_choice");
    return tools;
  }
  return { ...tools, toolConfig: { functionCallingConfig: config } };
}

function writeTool(tool: Tool, dropped: WriteTarget["dropped"]): JsonObject[] {
  if (tool.type !== "function") {
    dropped.add("tools");
    return [];
  }
  if (tool.strict === true) dropped.add("strict");
  if (tool.cache !== undefined) dropped.add("cache_control");
  const { name, description, parameters } = tool;
  return [{
    name,
    ...(description !== undefined && description !== "" && { description }),
    // The schema must have the type `object`.
    ...(parameters !== undefined && {
      parametersJsonSchema: parameters.type === undefined ? { type: "object", ...parameters } : parameters,
    }),
  }];
}

function writeChoice(choice: ToolChoice): JsonObject | undefined {
  switch (choice.type) {
    case "auto":
      return { mode: "AUTO" };
    case "none":
      return { mode: "NONE" };
    case "required":
      return { mode: "ANY" };
    case "tool":
      return { mode: "ANY", allowedFunctionNames: [choice.name] };
    case "allowed":
      // A mode for text or one of these calls: AUTO takes no names.
      return { mode: choice.mode === "required" ? "ANY" : "VALIDATED", allowedFunctionNames: choice.names };
    case "vendor_specific":
      return undefined;
  }
}
