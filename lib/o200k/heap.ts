/** A priority queue of numbers. */

/** A binary min-heap of non-negative numbers that grows as needed. */
export class Heap {
  #keys: Float64Array;
  #size = 0;

  constructor(capacity: number) {
    this.#keys = new Float64Array(capacity);
  }

  clear(): void {
    this.#size = 0;
  }

  /** Index of the last key with children; -1 if there is none. */
  get parents(): number {
    return (this.#size >> 1) - 1;
  }

  /**
   * Appends a key without ordering it. Before other calls, `sift` must be called for each index from `parents` down to
   * 0.
   */
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
    let index = this.#size - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const parentKey = keys[parent] as number;
      if (parentKey <= key) break;
      keys[index] = parentKey;
      index = parent;
    }
    keys[index] = key;
  }

  /** Removes and returns the smallest key; -1 if the heap is empty. */
  pop(): number {
    if (this.#size === 0) return -1;
    const keys = this.#keys;
    const smallest = keys[0] as number;
    keys[0] = keys[--this.#size] as number;
    if (this.#size > 1) this.sift(0);
    return smallest;
  }

  /** Moves the key at an index down until no child is smaller. */
  sift(start: number): void {
    const keys = this.#keys;
    const size = this.#size;
    const key = keys[start] as number;
    let index = start;
    for (;;) {
      let child = index * 2 + 1;
      if (child >= size) break;
      if (child + 1 < size && (keys[child + 1] as number) < (keys[child] as number)) child++;
      const childKey = keys[child] as number;
      if (childKey >= key) break;
      keys[index] = childKey;
      index = child;
    }
    keys[index] = key;
  }
}
