/** A list for items that come and go with every request. */

/** An item of an unordered list. */
export interface UnorderedItem {
  /** Its index, which the list sets; -1: it is in no list. */
  at: number;
}

/**
 * A list without order: an item is removed by putting the last one into its place. A `Set` or `Map` that items are added to
 * and deleted from all the time keeps a chain of its old tables with their former items. Once the first of them is old, only
 * a full collection frees them, and the small collections copy them all: 10 KB and 15 µs per request.
 */
export class UnorderedList<Item extends UnorderedItem> {
  readonly #items: Item[] = [];

  /** The present items. */
  get items(): readonly Item[] {
    return this.#items;
  }

  /** Adds an item that is in no list. */
  add(item: Item): void {
    item.at = this.#items.push(item) - 1;
  }

  /** Removes an item; does nothing if it is in no list. */
  delete(item: Item): void {
    const last = this.#items.at(-1);
    if (item.at < 0 || last === undefined) return;
    this.#items[item.at] = last;
    last.at = item.at;
    item.at = -1;
    this.#items.pop();
  }
}
