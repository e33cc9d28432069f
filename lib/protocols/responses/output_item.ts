/** The interface of output items that are being written, and their common events. */
import type { Citation, OpenBlock, Signature, TokenLogprob } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";

/** An event of the stream, without its sequence number. */
export interface ResponsesEvent {
  type: string;
  members: JsonObject;
}

/** Types of the events that end a complete answer. */
export const COMPLETE_EVENTS: ReadonlySet<string> = new Set(["response.completed", "response.incomplete"]);

/** The final status of an item. */
export type ItemStatus = "completed" | "incomplete";

/** An item that is being written. Most methods return the events to send. */
export interface OutputItem {
  /** Adds the next block to the item; returns undefined if that block needs an item of its own. */
  join(block: OpenBlock): ResponsesEvent[] | undefined;
  delta(text: string): ResponsesEvent[];
  /** Adds the tokens of the text that follows; absent: the item has no log probabilities. */
  logprobs?(tokens: readonly TokenLogprob[]): void;
  citation(citation: Citation): ResponsesEvent[];
  /** Closes the block; another one may join the item. */
  close(signature?: Signature): ResponsesEvent[];
  done(status: ItemStatus): ResponsesEvent[];
  /** Returns the item as if it ended now; undefined if it has no content. */
  value(status: ItemStatus): JsonObject | undefined;
  /** Returns the item as it is stored, or undefined if it is not stored; absent: what `value` returns is stored. */
  kept?(status: ItemStatus): JsonObject | undefined;
}

/** The place of an item: its request, and its position in the answer. */
export interface ItemPosition {
  requestId: string;
  /** Counted from 0. */
  index: number;
}

/** Returns the id of an item, which is made of the request id and the index. */
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

/** Returns an item that writes nothing, for blocks that the client does not get. */
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

/** Returns an item that the upstream sent in one piece, and the event that opens it. */
export function wholeItem(item: JsonObject, { index }: ItemPosition): { item: OutputItem; events: ResponsesEvent[] } {
  return {
    item: { ...emptyItem(), done: () => [itemDone(index, item)], value: () => item },
    events: [itemAdded(index, item)],
  };
}
