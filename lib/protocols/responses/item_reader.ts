/** What the readers of all kinds of items have in common. */
import type { JsonObject } from "../../json/mod.ts";

/** Reads one item. What it says goes into its lane; whatever comes, nothing is said twice. */
export interface ItemReader {
  /** The item as it began. */
  added(item: JsonObject): void;
  /** An event about the item. @param name its type without `response.` */
  event(name: string, event: JsonObject): void;
  /** The item is over; `item` is the whole of it, where that is known. */
  done(item: JsonObject | undefined): void;
}

/** What of the whole text is not said yet; nothing where the two do not agree. */
export function remainder(whole: string | undefined, said: string): string {
  return whole !== undefined && whole.startsWith(said) ? whole.slice(said.length) : "";
}
