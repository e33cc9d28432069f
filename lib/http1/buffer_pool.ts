/** Buffers that are needed for a moment: kept to be used again. */

/** Length of a large one, in bytes. */
export const BUFFER_BYTES = 64 * 1024;
/** Length of a small one: new ones of the large kind cost more than what they are for. */
const SMALL_BYTES = 16 * 1024;
/** Most that are kept of each kind. */
const KEPT = 64;

/** A buffer; what stands in it is old. */
export type PooledBuffer = Uint8Array<ArrayBuffer>;

/** Buffers of two lengths. */
export interface BufferPool {
  /** One that nobody else uses, of so many bytes at least, up to `SCRATCH_BYTES`. */
  take(leastBytes: number): PooledBuffer;
  /** Gives one back. */
  give(scratch: PooledBuffer): void;
}

/** Starts with none. */
export function createBufferPool(): BufferPool {
  const small: PooledBuffer[] = [];
  const large: PooledBuffer[] = [];
  return {
    take(leastBytes) {
      return leastBytes <= SMALL_BYTES
        ? small.pop() ?? new Uint8Array(SMALL_BYTES)
        : large.pop() ?? new Uint8Array(BUFFER_BYTES);
    },
    give(scratch) {
      const kept = scratch.length === SMALL_BYTES ? small : large;
      if (kept.length < KEPT) kept.push(scratch);
    },
  };
}
