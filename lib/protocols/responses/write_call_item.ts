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

const FUNCTION = {
  type: "function_call",
  prefix: "fc",
  member: "arguments",
  onDelta: "response.function_call_arguments.delta",
  onDone: "response.function_call_arguments.done",
} as const;

const CUSTOM = {
  type: "custom_tool_call",
  prefix: "ctc",
  member: "input",
  onDelta: "response.custom_tool_call_input.delta",
  onDone: "response.custom_tool_call_input.done",
} as const;

/** Writes a tool call. Empty arguments of a function become `{}`. */
export function callItem(call: Call, position: ItemPosition): { item: OutputItem; events: ResponsesEvent[] } {
  const custom = call.custom === true;
  const { type, prefix, member, onDelta, onDone } = custom ? CUSTOM : FUNCTION;
  const at = { item_id: itemId(prefix, position), output_index: position.index };
  let text = "";

  function write(status: ItemStatus | "in_progress"): JsonObject {
    return {
      type,
      id: at.item_id,
      call_id: call.id,
      name: call.name,
      [member]: text,
      status,
      ...(call.namespace !== undefined && { namespace: call.namespace }),
    };
  }

  function delta(piece: string): ResponsesEvent[] {
    text += piece;
    return [{ type: onDelta, members: { ...at, delta: piece } }];
  }

  const item: OutputItem = {
    ...emptyItem(),
    delta,
    done(status) {
      const events = text === "" && !custom ? delta("{}") : [];
      events.push(
        { type: onDone, members: { ...at, ...(!custom && { name: call.name }), [member]: text } },
        itemDone(position.index, write(status)),
      );
      return events;
    },
    value: write,
  };
  return { item, events: [itemAdded(position.index, write("in_progress"))] };
}
