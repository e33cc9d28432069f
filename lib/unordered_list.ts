/** A list without order, for items that are added and removed with every request. */

/** An item of an unordered list. */
export interface UnorderedItem {
  /** Its index, set by the list; -1 while it is in no list. */
  at: number;
}

/**
 * A list without order: the last item takes the index of a removed one. A `Set` or `Map` that constantly gains and
 * loses items keeps a chain of its old tables with their former items. Once the first table is in the old generation,
 * only a full garbage collection frees the chain, and each minor collection copies all of it: 10 KB and 15 µs per
 * request.
 */
export class UnorderedList<Item extends UnorderedItem> {
  readonly #items: Item[] = [];

  /** The items, in no particular order. */
  get items(): readonly Item[] {
    return this.#items;
  }

  add(item: Item): void {
    item.at = this.#items.push(item) - 1;
  }

  /** Removes an item; does nothing if it is not in the list. */
  delete(item: Item): void {
    const last = this.#items.at(-1);
    if (item.at < 0 || last === undefined) return;
    this.#items[item.at] = last;
    last.at = item.at;
    item.at = -1;
    this.#items.pop();
  }
}
