/** A list without order, for items that are added and removed with every request. */

/** One of many in a bag. */
export interface Bagged {
  /** Its place among the others, which is the bag's affair; -1: it is in none. */
  at: number;
}

/**
 * Many things in no order, added and taken out at the cost of nothing. No `Set` and no `Map`: one that is added to and taken
 * from all the time leaves a chain of its old tables, each with what stood in it at its time and all that this held. Once the
 * first of them is old, only a full collection frees them, and the small ones copy them all: 10 KB and 15 µs per request.
 */
export class Bag<Item extends Bagged> {
  readonly #items: Item[] = [];

  /** All that are in it now; not to be changed. */
  get items(): readonly Item[] {
    return this.#items;
  }

  /** Adds what is in no bag. */
  add(item: Item): void {
    item.at = this.#items.push(item) - 1;
  }

  /** Takes one out; nothing where it is not in it any more. */
  delete(item: Item): void {
    const last = this.#items.at(-1);
    if (item.at < 0 || last === undefined) return;
    this.#items[item.at] = last;
    last.at = item.at;
    item.at = -1;
    this.#items.pop();
  }
}
