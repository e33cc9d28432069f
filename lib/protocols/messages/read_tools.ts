/** Reads tools and the tool choice. */
import type { Tool, ToolChoice } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import { isObject, type Json, type JsonObject } from "../../json/mod.ts";
import { booleanOf, stringOf } from "../members.ts";
import {
  readArray,
  readCache,
  type ReadContext,
  readObject,
  readString,
  readUnknownMembers,
  withoutUndefined,
} from "./members.ts";

const TOOL = new Set(["type", "name", "description", "input_schema", "strict", "cache_control"]);

/** Reads the tools. A tool with another type than `custom` is the vendor's own and kept whole. */
export function readTools(value: Json | undefined, context: ReadContext): Tool[] {
  if (value === undefined || value === null) return [];
  return readArray(value, "tools").map((item, index) => {
    const path = `tools[${index}]`;
    const tool = readObject(item, path);
    const cache = readCache(tool, context);
    if (typeof tool.type === "string" && tool.type !== "custom") {
      return { type: "hosted", from: "messages", value: tool };
    }
    return withoutUndefined({
      type: "function",
      name: readString(tool.name, `${path}.name`),
      description: stringOf(tool.description),
      parameters: readObject(tool.input_schema, `${path}.input_schema`),
      strict: booleanOf(tool.strict),
      cache,
      unknownMembers: readUnknownMembers(tool, TOOL),
    });
  });
}

/** Reads `tool_choice`: the choice, and whether parallel calls are allowed. */
export function readToolChoice(value: Json | undefined): { toolChoice?: ToolChoice; parallelToolCalls?: boolean } {
  if (!isObject(value)) return {};
  const single = booleanOf(value.disable_parallel_tool_use);
  return withoutUndefined({
    toolChoice: readChoice(value),
    parallelToolCalls: single === undefined ? undefined : !single,
  });
}

function readChoice(value: JsonObject): ToolChoice {
  switch (value.type) {
    case "auto":
    case "none":
      return { type: value.type };
    case "any":
      return { type: "required" };
    case "tool":
      return { type: "tool", name: readString(value.name, "tool_choice.name") };
    default:
      throw new GatewayError("invalid", "Unexpected tool choice", { param: "tool_choice.type" });
  }
}
