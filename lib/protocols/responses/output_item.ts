/** Output items of an answer. */
import type { Citation, OpenBlock, Signature } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";

/** An event of the stream without its number. */
export interface ResponsesEvent {
  type: string;
  members: JsonObject;
}

/** Final status of an item. */
export type ItemStatus = "completed" | "incomplete";

/** An item being written. Each method returns the events to send. */
export interface OutputItem {
  /** Adds a following block; `undefined` if the block needs an item of its own. */
  join(block: OpenBlock): ResponsesEvent[] | undefined;
  /** Adds text to the block. */
  delta(text: string): ResponsesEvent[];
  citation(citation: Citation): ResponsesEvent[];
  /** Closes the block; the item may continue. */
  close(signature?: Signature): ResponsesEvent[];
  /** Ends the item. */
  done(status: ItemStatus): ResponsesEvent[];
  /** Returns the item as if it ended now; `undefined` if it has no content. */
  value(status: ItemStatus): JsonObject | undefined;
  /** Returns the item as later requests need it; absent: as `value`. */
  stored?(status: ItemStatus): JsonObject;
}

/** Position of an item in the answer. */
export interface ItemPosition {
  requestId: string;
  /** Counted from 0. */
  index: number;
}

/** Returns the id of an item, made of the request id and the index. */
export function itemId(prefix: "msg" | "fc" | "ctc" | "rs", { requestId, index }: ItemPosition): string {
  return `${prefix}_${requestId}_${index}`;
}

/** Returns the event that opens an item. */
export function itemAdded(index: number, item: JsonObject): ResponsesEvent {
  return { type: "response.output_item.added", members: { output_index: index, item } };
}

/** Returns the event that ends an item. */
export function itemDone(index: number, item: JsonObject): ResponsesEvent {
  return { type: "response.output_item.done", members: { output_index: index, item } };
}

/** Returns an item without output, for blocks that the client does not get. */
export function emptyItem(): OutputItem {
  return {
    join: () => undefined,
    delta: () => [],
    citation: () => [],
    close: () => [],
    done: () => [],
    value: () => undefined,
  };
}

/** Returns an item of this protocol that came whole. */
export function wholeItem(item: JsonObject, { index }: ItemPosition): { item: OutputItem; events: ResponsesEvent[] } {
  return {
    item: { ...emptyItem(), done: () => [itemDone(index, item)], value: () => item },
    events: [itemAdded(index, item)],
  };
}
