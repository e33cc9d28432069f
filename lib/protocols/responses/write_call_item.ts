/** Writes the calls of an answer as output items. */
import type { OpenBlock } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import {
  emptyItem,
  itemAdded,
  itemDone,
  itemId,
  type ItemPosition,
  type ItemStatus,
  type OutputItem,
  type ResponsesEvent,
} from "./output_item.ts";

type Call = Extract<OpenBlock, { type: "tool_call" }>;

const FUNCTION_CALL = { type: "function_call", prefix: "fc", member: "arguments" } as const;

/** The form of a call of a custom tool. */
const CUSTOM_CALL = { type: "custom_tool_call", prefix: "ctc", member: "input" } as const;

/** Creates the item of a tool call, and the event that opens it. Empty arguments of a function become `{}`. */
export function callItem(call: Call, position: ItemPosition): { item: OutputItem; events: ResponsesEvent[] } {
  const custom = call.custom === true;
  const { type, prefix, member } = custom ? CUSTOM_CALL : FUNCTION_CALL;
  const location = { item_id: itemId(prefix, position), output_index: position.index };
  let text = "";

  function write(status: ItemStatus | "in_progress"): JsonObject {
    return {
      type,
      id: location.item_id,
      call_id: call.id,
      name: call.name,
      [member]: text,
      status,
      ...(call.namespace !== undefined && { namespace: call.namespace }),
    };
  }

  function delta(piece: string): ResponsesEvent[] {
    text += piece;
    return [{ type: `response.${type}_${member}.delta`, members: { ...location, delta: piece } }];
  }

  const item: OutputItem = {
    ...emptyItem(),
    delta,
    done(status) {
      const events = text === "" && !custom ? delta("{}") : [];
      const members = { ...location, ...(!custom && { name: call.name }), [member]: text };
      return [...events, { type: `response.${type}_${member}.done`, members }, itemDone(position.index, write(status))];
    },
    value: write,
  };
  return { item, events: [itemAdded(position.index, write("in_progress"))] };
}
