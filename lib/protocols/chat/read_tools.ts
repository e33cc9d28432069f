/** Reads the tools and the tool choice of a chat request. */
import { readCacheMark } from "../canonical/cache_mark.ts";
import type { Tool, ToolChoice } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import type { Json, JsonObject } from "../../json/mod.ts";
import { objectOf, objectsOf, present, stringOf } from "../members.ts";
import { readFunction } from "../openai_settings.ts";
import type { ToolList } from "../plain_contents.ts";
import { unknownIn } from "../canonical/unknown_members.ts";

const TOOL_MEMBERS = new Set(["type", "cache_control"]);
const FUNCTION_MEMBERS = new Set(["name", "description", "parameters", "strict"]);
const NESTED_FUNCTION_MEMBERS = { function: new Set([...FUNCTION_MEMBERS, "cache_control"]) };
const NESTED_CUSTOM_MEMBERS = { custom: new Set(["name", "description", "format"]) };

/** True for a request with the deprecated `functions`, whose answer has a `function_call`. */
export function usesLegacyFunctions(body: JsonObject): boolean {
  return Array.isArray(body.functions);
}

/** Reads `tools`, or the deprecated `functions`. @throws {GatewayError} `invalid`, if there are both */
export function readTools(body: JsonObject): Tool[] {
  if (!usesLegacyFunctions(body)) return objectsOf(body.tools).map(readTool);
  if (objectsOf(body.tools).length > 0) {
    throw new GatewayError("invalid", "Cannot use functions together with tools", { param: "functions" });
  }
  return objectsOf(body.functions).map((value) => ({
    ...readFunction(value),
    ...unknownIn("chat", value, FUNCTION_MEMBERS),
  }));
}

/**
 * Reads `tool_choice`, or the deprecated `function_call`.
 * @throws {GatewayError} `invalid`, if it names a tool that the request does not have
 */
export function readToolChoice(body: JsonObject, tools: ToolList): ToolChoice | undefined {
  const isLegacy = body.function_call !== undefined && body.function_call !== null;
  const param = isLegacy ? "function_call" : "tool_choice";
  const choice = isLegacy ? functionChoiceOf(body.function_call) : choiceOf(body.tool_choice);
  const missing = choice && missingTool(choice, tools);
  if (missing !== undefined) throw new GatewayError("invalid", `Cannot use ${param}: ${missing}`, { param });
  return choice;
}

function readTool(tool: JsonObject): Tool {
  if (tool.type === "custom") return readCustom(tool);
  return tool.type === "function" ? readFunctionTool(tool) : { type: "hosted", from: "chat", value: tool };
}

function readFunctionTool(tool: JsonObject): Tool {
  const inner = objectOf(tool.function) ?? {};
  return {
    ...readFunction(inner),
    ...readCacheMark(inner),
    ...readCacheMark(tool),
    ...unknownIn("chat", tool, TOOL_MEMBERS, { inner: NESTED_FUNCTION_MEMBERS }),
  };
}

function readCustom(tool: JsonObject): Tool {
  const inner = objectOf(tool.custom) ?? {};
  return {
    type: "custom",
    name: stringOf(inner.name) ?? "",
    ...present({ description: stringOf(inner.description), format: formatOf(objectOf(inner.format)) }),
    ...readCacheMark(tool),
    ...unknownIn("chat", tool, TOOL_MEMBERS, { inner: NESTED_CUSTOM_MEMBERS }),
  };
}

/** Returns the flat form of a format: chat has the members of a grammar in an inner object. */
function formatOf(format: JsonObject | undefined): JsonObject | undefined {
  if (format?.type !== "grammar") return format;
  const { grammar, ...others } = format;
  return { ...others, ...objectOf(grammar) };
}

function choiceOf(value: Json | undefined): ToolChoice | undefined {
  if (value === "auto" || value === "none" || value === "required") return { type: value };
  const choice = objectOf(value);
  const allowed = objectOf(choice?.allowed_tools);
  if (allowed !== undefined) {
    const names = objectsOf(allowed.tools).map((tool) => nameOf(tool) ?? "");
    return { type: "allowed", mode: allowed.mode === "required" ? "required" : "auto", names };
  }
  const name = choice && nameOf(choice);
  if (name === undefined) return undefined;
  return choice?.type === "custom" ? { type: "tool", name, custom: true } : { type: "tool", name };
}

function functionChoiceOf(value: Json | undefined): ToolChoice | undefined {
  if (value === "auto" || value === "none") return { type: value };
  const name = stringOf(objectOf(value)?.name);
  return name === undefined ? undefined : { type: "tool", name };
}

function nameOf(choice: JsonObject): string | undefined {
  return stringOf(objectOf(choice.function)?.name) ?? stringOf(objectOf(choice.custom)?.name);
}

/** Returns why a choice is impossible; undefined if it is possible. */
function missingTool(choice: ToolChoice, { count, list }: ToolList): string | undefined {
  if (choice.type === "required") return count > 0 ? undefined : "the request has no tools";
  let names: readonly string[] = [];
  if (choice.type === "tool") names = [choice.name];
  else if (choice.type === "allowed") names = choice.names;
  if (names.length === 0) return undefined;
  const tools = list();
  const missing = names.find((name) => !tools.some((tool) => tool.type !== "hosted" && tool.name === name));
  return missing === undefined ? undefined : `the request has no tool called "${missing}"`;
}
