import type { JsonObject } from "../../json/mod.ts";

/** Reads one item of an answer into its blocks. Repeated text is dropped. */
export interface ItemReader {
  /** Takes the item as it begins. */
  added(item: JsonObject): void;
  /** Takes an event of the item. @param name its type without `response.` */
  event(name: string, event: JsonObject): void;
  /** Ends the item; `item` is the whole item, if known. */
  done(item: JsonObject | undefined): void;
}

/** Returns the part of the whole text that is still missing; nothing if the two do not agree. */
export function remainder(whole: string | undefined, sent: string): string {
  return whole !== undefined && whole.startsWith(sent) ? whole.slice(sent.length) : "";
}
