/** Reads the tools and the tool choice of a responses request. */
import { readCacheMark } from "../canonical/cache_mark.ts";
import type { Tool, ToolChoice } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import { checkCount } from "../fields.ts";
import { objectOf, objectsOf, present, stringOf } from "../members.ts";
import { readFunction } from "../openai_settings.ts";
import { unknownIn } from "../canonical/unknown_members.ts";

const FUNCTION_MEMBERS = new Set(["type", "name", "description", "parameters", "strict", "cache_control"]);
const CUSTOM_MEMBERS = new Set(["type", "name", "description", "format", "cache_control"]);
const NAMESPACE_MEMBERS = new Set(["type", "name", "tools"]);

/** The members that a tool inherits from the object around it. */
interface ToolContext {
  namespace?: string;
  /** Further unknown members of the tool. */
  more?: JsonObject;
}

/**
 * Reads the tools of `tools`, then those of `additional_tools` items. Tools of a namespace become single tools. Other
 * members of a namespace or an item are kept with each of its tools, as the unknown members `namespace` and
 * `additional_tools`; the latter has the item's index in the input, too.
 * @throws {GatewayError} `invalid`, for too many tools
 */
export function readTools(body: JsonObject): Tool[] {
  const tools = objectsOf(body.tools).flatMap((tool) => readTool(tool));
  objectsOf(body.input).forEach((item, index) => {
    if (item.type !== "additional_tools") return;
    const { type: _type, tools: addedTools, ...members } = item;
    const more = { additional_tools: { ...members, index } };
    tools.push(...objectsOf(addedTools).flatMap((tool) => readTool(tool, { more })));
  });
  checkCount("tools", tools.length, "tools");
  return tools;
}

function readTool(tool: JsonObject, context: ToolContext = {}): Tool[] {
  const { namespace, more } = context;
  const name = stringOf(tool.name) ?? "";
  switch (tool.type) {
    case "function":
      return [{
        ...readFunction(tool),
        ...present({ namespace }),
        ...readCacheMark(tool),
        ...unknownIn("responses", tool, FUNCTION_MEMBERS, { more }),
      }];
    case "custom":
      return [{
        type: "custom",
        name,
        ...present({ description: stringOf(tool.description), format: objectOf(tool.format), namespace }),
        ...readCacheMark(tool),
        ...unknownIn("responses", tool, CUSTOM_MEMBERS, { more }),
      }];
    case "namespace": {
      const { unknownMembers } = unknownIn("responses", tool, NAMESPACE_MEMBERS);
      const inside = { ...more, ...(unknownMembers !== undefined && { namespace: unknownMembers.members }) };
      return objectsOf(tool.tools).flatMap((inner) => readTool(inner, { namespace: name, more: inside }));
    }
    default:
      return [{
        type: "hosted",
        from: "responses",
        value: tool,
        ...unknownIn("responses", {}, FUNCTION_MEMBERS, { more }),
      }];
  }
}

/** Reads `tool_choice`, for spreading; no member if it is absent. */
export function readToolChoice({ tool_choice: value }: JsonObject): { toolChoice?: ToolChoice } {
  if (value === "auto" || value === "none" || value === "required") return { toolChoice: { type: value } };
  const choice = objectOf(value);
  if (choice === undefined) return {};
  const name = stringOf(choice.name);
  if (choice.type === "function" && name !== undefined) return { toolChoice: { type: "tool", name } };
  if (choice.type === "custom" && name !== undefined) return { toolChoice: { type: "tool", name, custom: true } };
  if (choice.type === "allowed_tools") {
    const names = objectsOf(choice.tools).map(({ type, name }) =>
      type === "function" || type === "custom" ? stringOf(name) : undefined
    );
    const mode = choice.mode === "required" ? "required" : "auto";
    // Only the vendor of a hosted tool can apply this choice. The name of an `mcp` tool is that of a server's tool.
    if (names.every((named) => named !== undefined)) return { toolChoice: { type: "allowed", mode, names } };
  }
  return { toolChoice: { type: "vendor_specific", from: "responses", value: choice } };
}
