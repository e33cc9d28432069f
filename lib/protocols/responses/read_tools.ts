/** Reads tools and the tool choice. */
import { readCacheMark } from "../canonical/cache_mark.ts";
import type { Tool, ToolChoice } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import type { JsonObject } from "../../json/mod.ts";
import { COUNTS } from "../fields.ts";
import { booleanOf, objectOf, objectsOf, present, stringOf } from "../members.ts";
import { collectUnknownMembers } from "../canonical/unknown_members.ts";

const FUNCTION = new Set(["type", "name", "description", "parameters", "strict", "cache_control"]);
const CUSTOM = new Set(["type", "name", "description", "format", "cache_control"]);
const NAMESPACE = new Set(["type", "name", "tools"]);

/** Members that a tool inherits from the object around it. */
interface Outside {
  namespace?: string;
  /** Additional unknown members of the tool. */
  more?: JsonObject;
}

/**
 * Reads the tools of `tools`, then those of `additional_tools` items. Namespaces are flattened; other members of a
 * namespace or an item are kept with each of its tools, as `namespace` and `additional_tools`, the latter with the
 * item's index in the input.
 * @throws {GatewayError} `invalid`, for too many tools
 */
export function readTools(body: JsonObject): Tool[] {
  const tools = objectsOf(body.tools).flatMap((tool) => readTool(tool));
  objectsOf(body.input).forEach((item, index) => {
    if (item.type !== "additional_tools") return;
    const { type: _type, tools: added, ...members } = item;
    const more = { additional_tools: { ...members, index } };
    tools.push(...objectsOf(added).flatMap((tool) => readTool(tool, { more })));
  });
  if (tools.length > COUNTS.tools) {
    throw new GatewayError("invalid", `Cannot take ${tools.length} tools: at most ${COUNTS.tools} are allowed`, {
      param: "tools",
    });
  }
  return tools;
}

function readTool(tool: JsonObject, outside: Outside = {}): Tool[] {
  const { namespace, more } = outside;
  const name = stringOf(tool.name) ?? "";
  const description = stringOf(tool.description);
  switch (tool.type) {
    case "function":
      return [{
        type: "function",
        name,
        ...present({
          description,
          parameters: objectOf(tool.parameters),
          strict: booleanOf(tool.strict),
          namespace,
        }),
        ...readCacheMark(tool),
        ...collectUnknownMembers("responses", tool, { modelled: FUNCTION, more }),
      }];
    case "custom":
      return [{
        type: "custom",
        name,
        ...present({ description, format: objectOf(tool.format), namespace }),
        ...readCacheMark(tool),
        ...collectUnknownMembers("responses", tool, { modelled: CUSTOM, more }),
      }];
    case "namespace": {
      const { unknownMembers } = collectUnknownMembers("responses", tool, { modelled: NAMESPACE });
      const inside = { ...more, ...(unknownMembers !== undefined && { namespace: unknownMembers.members }) };
      return objectsOf(tool.tools).flatMap((inner) => readTool(inner, { namespace: name, more: inside }));
    }
    default:
      return [{
        type: "hosted",
        from: "responses",
        value: tool,
        ...collectUnknownMembers("responses", {}, { modelled: FUNCTION, more: more ?? {} }),
      }];
  }
}

/** Reads `tool_choice`; nothing if it is absent. */
export function readToolChoice({ tool_choice: value }: JsonObject): { toolChoice?: ToolChoice } {
  if (value === "auto" || value === "none" || value === "required") return { toolChoice: { type: value } };
  const choice = objectOf(value);
  if (choice === undefined) return {};
  const name = stringOf(choice.name);
  if (choice.type === "function" && name !== undefined) return { toolChoice: { type: "tool", name } };
  if (choice.type === "custom" && name !== undefined) return { toolChoice: { type: "tool", name, custom: true } };
  if (choice.type === "allowed_tools") {
    const names = objectsOf(choice.tools).map((tool) => stringOf(tool.name));
    const mode = choice.mode === "required" ? "required" : "auto";
    // A hosted tool has no name, so only its vendor can apply this choice.
    if (names.every((named) => named !== undefined)) return { toolChoice: { type: "allowed", mode, names } };
  }
  return { toolChoice: { type: "vendor_specific", from: "responses", value: choice } };
}
