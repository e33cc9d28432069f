/** A tool call of the answer. */
import type { OpenBlock } from "../../canonical/types.ts";
import type { JsonObject } from "../../json.ts";
import {
  itemAdded,
  itemDone,
  itemId,
  type ItemPlace,
  type ItemStatus,
  type OutputItem,
  silentItem,
  type WireEvent,
} from "./output_item.ts";

type Call = Extract<OpenBlock, { type: "tool_call" }>;

/** A call of a function. Its arguments are never empty: a tool without parameters is called with `{}`. */
export function functionCallItem(call: Call, place: ItemPlace): { item: OutputItem; events: WireEvent[] } {
  const at = { item_id: itemId("fc", place), output_index: place.index };
  let text = "";

  function write(status: ItemStatus | "in_progress"): JsonObject {
    return {
      type: "function_call",
      id: at.item_id,
      call_id: call.id,
      name: call.name,
      arguments: text,
      status,
      ...(call.namespace !== undefined && { namespace: call.namespace }),
    };
  }

  function delta(piece: string): WireEvent[] {
    text += piece;
    return [{ type: "response.function_call_arguments.delta", members: { ...at, delta: piece } }];
  }

  const item: OutputItem = {
    ...silentItem(),
    delta,
    done(status) {
      const events = text === "" ? delta("{}") : [];
      events.push(
        { type: "response.function_call_arguments.done", members: { ...at, name: call.name, arguments: text } },
        itemDone(place.index, write(status)),
      );
      return events;
    },
    value: write,
  };
  return { item, events: [itemAdded(place.index, write("in_progress"))] };
}

/** A call of a tool that takes free-form text. */
export function customCallItem(call: Call, place: ItemPlace): { item: OutputItem; events: WireEvent[] } {
  const at = { item_id: itemId("ctc", place), output_index: place.index };
  let input = "";

  function write(status: ItemStatus | "in_progress"): JsonObject {
    return {
      type: "custom_tool_call",
      id: at.item_id,
      call_id: call.id,
      name: call.name,
      input,
      status,
      ...(call.namespace !== undefined && { namespace: call.namespace }),
    };
  }

  const item: OutputItem = {
    ...silentItem(),
    delta(piece) {
      input += piece;
      return [{ type: "response.custom_tool_call_input.delta", members: { ...at, delta: piece } }];
    },
    done: (status) => [
      { type: "response.custom_tool_call_input.done", members: { ...at, input } },
      itemDone(place.index, write(status)),
    ],
    value: write,
  };
  return { item, events: [itemAdded(place.index, write("in_progress"))] };
}
