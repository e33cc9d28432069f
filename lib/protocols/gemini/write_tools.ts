import { PARAMETER_NAMES } from "../canonical/parameter_names.ts";
import type { Prompt, Tool, ToolChoice } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import type { WriteTarget } from "../upstream_codec.ts";
import { objectOf, ownMembers, someOf } from "./members.ts";

/** Writes `tools` and `toolConfig`. */
export function writeTools(prompt: Prompt, { dropped }: WriteTarget): JsonObject {
  if (prompt.parallelToolCalls === false) dropped.add(PARAMETER_NAMES[prompt.protocol].parallel);
  const functionDeclarations = prompt.tools.flatMap((tool) => writeTool(tool, dropped));
  const hosted = prompt.tools.flatMap((tool) => tool.type === "hosted" && tool.from === "gemini" ? [tool.value] : []);
  const { functionCallingConfig, ...others } = objectOf(ownMembers(prompt.unknownMembers).toolConfig);
  const choice = functionDeclarations.length === 0 ? undefined : prompt.toolChoice && writeChoice(prompt.toolChoice);
  if (choice === undefined && isForced(prompt.toolChoice)) dropped.add("tool_choice");
  const calling = someOf({ ...choice, ...objectOf(functionCallingConfig) });
  const toolConfig = someOf({ functionCallingConfig: calling, ...others });
  const tools = [...(functionDeclarations.length > 0 ? [{ functionDeclarations }] : []), ...hosted];
  return { ...(tools.length > 0 && { tools }), ...(toolConfig !== undefined && { toolConfig }) };
}

function isForced(choice: ToolChoice | undefined): boolean {
  return choice !== undefined && choice.type !== "auto" && choice.type !== "none";
}

function writeTool(tool: Tool, dropped: WriteTarget["dropped"]): JsonObject[] {
  if (tool.type === "hosted" && tool.from === "gemini") return [];
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
    ...ownMembers(tool.unknownMembers),
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
