/** Writes the tools and the tool choice of a Gemini request. */
import { PARAMETER_NAMES } from "../canonical/parameter_names.ts";
import type { Prompt, Tool, ToolChoice } from "../canonical/types.ts";
import { ownMembers } from "../canonical/unknown_members.ts";
import type { JsonObject } from "../../json/mod.ts";
import type { WriteTarget } from "../upstream_codec.ts";
import { objectOf, someOf } from "../members.ts";

/** Writes `tools` and `toolConfig`, for spreading. */
export function writeTools(prompt: Prompt, { dropped }: WriteTarget): JsonObject {
  if (prompt.parallelToolCalls === false) dropped.add(PARAMETER_NAMES[prompt.protocol].parallel);
  const functionDeclarations = prompt.tools.flatMap((tool) =>
    tool.type === "function" ? [writeFunction(tool, dropped)] : []
  );
  const hosted = prompt.tools.flatMap((tool) => tool.type === "hosted" ? [tool.value] : []);
  const { functionCallingConfig, ...others } = objectOf(ownMembers(prompt).toolConfig) ?? {};
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

function writeFunction(tool: Extract<Tool, { type: "function" }>, dropped: WriteTarget["dropped"]): JsonObject {
  if (tool.strict === true) dropped.add("strict");
  const { name, description, parameters } = tool;
  return {
    name,
    ...(description !== undefined && description !== "" && { description }),
    // The schema must have the type `object`.
    ...(parameters !== undefined && {
      parametersJsonSchema: parameters.type === undefined ? { type: "object", ...parameters } : parameters,
    }),
    ...ownMembers(tool),
  };
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
      // VALIDATED allows text or a call of one of these tools. AUTO accepts no names.
      return { mode: choice.mode === "required" ? "ANY" : "VALIDATED", allowedFunctionNames: choice.names };
    case "vendor_specific":
      return undefined;
  }
}
