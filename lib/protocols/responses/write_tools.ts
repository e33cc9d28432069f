/** Writes the tools and the tool choice of a responses request. */
import { writeCacheMark } from "../canonical/cache_mark.ts";
import type { Tool } from "../canonical/types.ts";
import { ownMembers } from "../canonical/unknown_members.ts";
import type { JsonObject } from "../../json/mod.ts";
import { numberOf, objectOf, present } from "../members.ts";
import type { ChoiceForms } from "../openai_settings.ts";
import type { ResponsesWriteContext } from "./write_parts.ts";

/** An item with tools, with its index in the input. */
export interface AddedTools {
  index: number;
  item: JsonObject;
}

/** Writes the tools of the request, and the input items with further tools. */
export function writeTools(
  tools: readonly Tool[],
  context: ResponsesWriteContext,
): { tools: JsonObject[]; added: AddedTools[] } {
  const requestTools: Tool[] = [];
  const addedByIndex = new Map<number, { members: JsonObject; tools: Tool[] }>();
  for (const tool of tools) {
    const { index, ...members } = objectOf(ownMembers(tool).additional_tools) ?? {};
    const itemIndex = numberOf(index);
    if (itemIndex === undefined) {
      requestTools.push(tool);
      continue;
    }
    const addedItem = addedByIndex.get(itemIndex) ?? { members, tools: [] };
    addedByIndex.set(itemIndex, addedItem);
    addedItem.tools.push(tool);
  }
  const added = [...addedByIndex].sort(([a], [b]) => a - b).map(([index, { members, tools }]) => ({
    index,
    item: { ...members, type: "additional_tools", tools: nestByNamespace(tools, context) },
  }));
  return { tools: nestByNamespace(requestTools, context), added };
}

/** Inserts the items with tools at their indices, or at the end if there are fewer items now. */
export function insertTools(items: readonly JsonObject[], added: readonly AddedTools[]): JsonObject[] {
  const merged = [...items];
  for (const { index, item } of added) merged.splice(index, 0, item);
  return merged;
}

/** The forms of a tool choice. It has only the name of a tool: the protocol finds it in any namespace. */
export const CHOICE_FORMS: ChoiceForms = {
  named: (name, custom) => ({ type: custom ? "custom" : "function", name }),
  allowed: (choice) => ({ type: "allowed_tools", ...choice }),
};

/** Writes tools, and puts adjacent tools of one namespace into one object. */
function nestByNamespace(tools: readonly Tool[], context: ResponsesWriteContext): JsonObject[] {
  const written: JsonObject[] = [];
  let open: { name: string; members: string; tools: JsonObject[] } | undefined;
  for (const tool of tools) {
    const value = writeTool(tool, context);
    const namespaceMembers = objectOf(ownMembers(tool).namespace);
    const members = JSON.stringify(namespaceMembers ?? {});
    // A hosted tool does not know the name of its namespace, only the namespace's other members.
    const hostedName = namespaceMembers === undefined ? undefined : open?.name;
    const name = tool.type === "hosted" ? hostedName : tool.namespace;
    if (name === undefined) {
      open = undefined;
      written.push(value);
    } else if (open?.name === name && open.members === members) {
      open.tools.push(value);
    } else {
      open = { name, members, tools: [value] };
      written.push({ ...namespaceMembers, type: "namespace", name, tools: open.tools });
    }
  }
  return written;
}

function writeTool(tool: Tool, { own }: ResponsesWriteContext): JsonObject {
  if (tool.type === "hosted") return tool.value;
  const { additional_tools: _place, namespace: _namespace, ...members } = ownMembers(tool);
  const { type, name, description } = tool;
  const options = type === "custom" ? { format: tool.format } : {
    parameters: tool.parameters ?? (own ? undefined : { type: "object", properties: {} }),
    // A missing member means strict in this protocol, and not strict in others.
    strict: tool.strict ?? (own ? undefined : false),
  };
  return { ...members, type, name, ...present({ description }), ...present(options), ...writeCacheMark(tool) };
}
