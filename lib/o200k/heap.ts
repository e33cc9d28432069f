/** A priority queue of plain numbers. */

/** A binary min-heap of non-negative numbers that grows as needed. */
export class Heap {
  #keys: Float64Array;
  #size = 0;

  constructor(capacity: number) {
    this.#keys = new Float64Array(capacity);
  }

  /** Removes all keys. */
  clear(): void {
    this.#size = 0;
  }

  /** Index of the last key with children; -1 if there is none. */
  get parents(): number {
    return (this.#size >> 1) - 1;
  }

  /** Appends a key out of order: afterwards call `sift` from `parents` down to 0. */
  append(key: number): void {
    if (this.#size === this.#keys.length) {
      const larger = new Float64Array(this.#size * 2 + 16);
      larger.set(this.#keys);
      this.#keys = larger;
    }
    this.#keys[this.#size++] = key;
  }

  push(key: number): void {
    this.append(key);
    const keys = this.#keys;
    let at = this.#size - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = keys[parent] as number;
      if (above <= key) break;
      keys[at] = above;
      at = parent;
    }
    keys[at] = key;
  }

  /** Removes the smallest key; -1 if the heap is empty. */
  pop(): number {
    if (this.#size === 0) return -1;
    const keys = this.#keys;
    const least = keys[0] as number;
    keys[0] = keys[--this.#size] as number;
    if (this.#size > 1) this.sift(0);
    return least;
  }

  /** Moves the key at an index down until no child is smaller. */
  sift(at: number): void {
    const keys = this.#keys;
    const size = this.#size;
    const key = keys[at] as number;
    for (;;) {
      let child = at * 2 + 1;
      if (child >= size) break;
      if (child + 1 < size && (keys[child + 1] as number) < (keys[child] as number)) child++;
      const below = keys[child] as number;
      if (below >= key) break;
      keys[at] = below;
      at = child;
    }
    keys[at] = key;
  }
}
