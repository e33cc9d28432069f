/** Reads the tools and the tool choice of a messages request. */
import type { Tool, ToolChoice } from "../canonical/types.ts";
import { unknownIn } from "../canonical/unknown_members.ts";
import { isObject, type Json, type JsonObject } from "../../json/mod.ts";
import { booleanOf, objectsOf, present, stringOf } from "../members.ts";
import { readCache, type ReadContext, readObject } from "./read_content.ts";

const TOOL_MEMBERS = new Set(["type", "name", "description", "input_schema", "strict", "cache_control"]);

/** Reads the tools. A tool of another type than `custom` is one of the vendor's and kept as it is. */
export function readTools(value: Json | undefined, context: ReadContext): Tool[] {
  return objectsOf(value).map((tool, index) => {
    const mark = readCache(tool, context);
    if (typeof tool.type === "string" && tool.type !== "custom") {
      return { type: "hosted", from: "messages", value: tool };
    }
    return {
      type: "function",
      name: stringOf(tool.name) ?? "",
      parameters: readObject(tool.input_schema, `tools[${index}].input_schema`),
      ...present({ description: stringOf(tool.description), strict: booleanOf(tool.strict) }),
      ...mark,
      ...unknownIn("messages", tool, TOOL_MEMBERS),
    };
  });
}

/** Reads `tool_choice`: the choice, and whether parallel calls are allowed. */
export function readToolChoice(value: Json | undefined): { toolChoice?: ToolChoice; parallelToolCalls?: boolean } {
  if (!isObject(value)) return {};
  const isSingleCall = booleanOf(value.disable_parallel_tool_use);
  return present({
    toolChoice: readChoice(value),
    parallelToolCalls: isSingleCall === undefined ? undefined : !isSingleCall,
  });
}

function readChoice({ type, name }: JsonObject): ToolChoice {
  if (type === "tool") return { type, name: stringOf(name) ?? "" };
  if (type === "any") return { type: "required" };
  return { type: type === "none" ? "none" : "auto" };
}
