/** What all items of an answer have in common, whatever they hold. */
import type { Citation, OpenBlock, Signature } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";

/** One event of the stream, before it is numbered. */
export interface ResponsesEvent {
  type: string;
  members: JsonObject;
}

/** How an item ended. */
export type ItemStatus = "completed" | "incomplete";

/** An item that is being written. Each method returns the events that say what happened. */
export interface OutputItem {
  /** Takes in a block that follows; `undefined` where the block needs an item of its own. */
  join(block: OpenBlock): ResponsesEvent[] | undefined;
  /** A piece of the block's text. */
  delta(text: string): ResponsesEvent[];
  citation(citation: Citation): ResponsesEvent[];
  /** The block is over; the item may go on. */
  close(signature?: Signature): ResponsesEvent[];
  /** The item is over. */
  done(status: ItemStatus): ResponsesEvent[];
  /** The item as it stands, were it over now; `undefined` where it shows nothing. */
  value(status: ItemStatus): JsonObject | undefined;
}

/** Where an item stands in the answer. */
export interface ItemPosition {
  requestId: string;
  /** Counted from 0. */
  index: number;
}

/** The id of an item: its prefix, the request and its place. */
export function itemId(prefix: "msg" | "fc" | "ctc" | "rs", { requestId, index }: ItemPosition): string {
  return `${prefix}_${requestId}_${index}`;
}

/** The event that opens an item. */
export function itemAdded(index: number, item: JsonObject): ResponsesEvent {
  return { type: "response.output_item.added", members: { output_index: index, item } };
}

/** The event that ends an item. */
export function itemDone(index: number, item: JsonObject): ResponsesEvent {
  return { type: "response.output_item.done", members: { output_index: index, item } };
}

/** An item that shows nothing, for blocks the client has no use for. */
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

/** An item of this protocol that came whole. */
export function wholeItem(item: JsonObject, { index }: ItemPosition): { item: OutputItem; events: ResponsesEvent[] } {
  return {
    item: { ...emptyItem(), done: () => [itemDone(index, item)], value: () => item },
    events: [itemAdded(index, item)],
  };
}
