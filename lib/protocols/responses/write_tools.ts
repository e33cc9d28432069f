/** Writes tools and the tool choice. */
import type { Tool, ToolChoice } from "../canonical/types.ts";
import { ownMembers } from "../canonical/unknown_members.ts";
import type { Json, JsonObject } from "../../json/mod.ts";
import { numberOf, objectOf } from "../members.ts";
import { type ResponsesWriteContext, writeCache } from "./write_context.ts";

/** An item with tools, and its index in the input. */
export interface AddedTools {
  index: number;
  item: JsonObject;
}

/** Writes the tools of the request, and those of input items. */
export function writeTools(
  tools: readonly Tool[],
  context: ResponsesWriteContext,
): { tools: JsonObject[]; added: AddedTools[] } {
  const top: Tool[] = [];
  const places = new Map<number, { members: JsonObject; tools: Tool[] }>();
  for (const tool of tools) {
    const { index, ...members } = objectOf(ownMembers(tool).additional_tools) ?? {};
    const at = numberOf(index);
    if (at === undefined) {
      top.push(tool);
      continue;
    }
    const place = places.get(at) ?? { members, tools: [] };
    places.set(at, place);
    place.tools.push(tool);
  }
  const added = [...places].sort(([a], [b]) => a - b).map(([index, { members, tools }]) => ({
    index,
    item: { ...members, type: "additional_tools", tools: nest(tools, context) },
  }));
  return { tools: nest(top, context), added };
}

/** Inserts the items with tools at their indexes, or at the end if items were removed since. */
export function insertTools(items: readonly JsonObject[], added: readonly AddedTools[]): JsonObject[] {
  const all = [...items];
  for (const { index, item } of added) all.splice(index, 0, item);
  return all;
}

/** Writes a choice. The name is enough: the protocol finds a tool in any namespace. */
export function writeToolChoice(choice: ToolChoice, tools: readonly Tool[]): Json {
  switch (choice.type) {
    case "auto":
    case "none":
    case "required":
      return choice.type;
    case "tool":
      return { type: choice.custom === true ? "custom" : "function", name: choice.name };
    case "allowed": {
      const custom = new Set(tools.flatMap((tool) => tool.type === "custom" ? [tool.name] : []));
      const toolRefs = choice.names.map((name) => ({ type: custom.has(name) ? "custom" : "function", name }));
      return { type: "allowed_tools", mode: choice.mode, tools: toolRefs };
    }
    case "vendor_specific":
      return choice.value;
  }
}

/** Puts adjacent tools of one namespace into it. */
function nest(tools: readonly Tool[], context: ResponsesWriteContext): JsonObject[] {
  const wireTools: JsonObject[] = [];
  let open: { name: string; members: string; tools: JsonObject[] } | undefined;
  for (const tool of tools) {
    const value = writeTool(tool, context);
    const about = objectOf(ownMembers(tool).namespace);
    const members = JSON.stringify(about ?? {});
    // A hosted tool has no namespace of its own, only the namespace's other members.
    const name = tool.type !== "hosted" ? tool.namespace : about === undefined ? undefined : open?.name;
    if (name === undefined) {
      open = undefined;
      wireTools.push(value);
    } else if (open?.name === name && open.members === members) {
      open.tools.push(value);
    } else {
      open = { name, members, tools: [value] };
      wireTools.push({ ...about, type: "namespace", name, tools: open.tools });
    }
  }
  return wireTools;
}

function writeTool(tool: Tool, { own }: ResponsesWriteContext): JsonObject {
  const { additional_tools: _place, namespace: _namespace, ...members } = ownMembers(tool);
  const cache = writeCache(tool);
  switch (tool.type) {
    case "function": {
      const { name, description } = tool;
      const parameters = tool.parameters ?? (own ? undefined : { type: "object", properties: {} });
      // Absent means strict here, and not strict in other protocols.
      const strict = tool.strict ?? (own ? undefined : false);
      return {
        ...members,
        type: "function",
        name,
        ...(description !== undefined && { description }),
        ...(parameters !== undefined && { parameters }),
        ...(strict !== undefined && { strict }),
        ...cache,
      };
    }
    case "custom": {
      const { name, description, format } = tool;
      return {
        ...members,
        type: "custom",
        name,
        ...(description !== undefined && { description }),
        ...(format !== undefined && { format }),
        ...cache,
      };
    }
    case "hosted":
      return tool.value;
  }
}
