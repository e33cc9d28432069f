/** Buffers for short use, kept for reuse. */

/** Length of a large buffer, in bytes. */
export const BUFFER_BYTES = 64 * 1024;
/** Length of a small buffer, in bytes: allocating a large one costs more than its use. */
const SMALL_BYTES = 16 * 1024;
/** Most buffers kept of each length. */
const KEPT = 64;

/** A buffer with stale content. */
export type PooledBuffer = Uint8Array<ArrayBuffer>;

/** Buffers of two lengths. */
export interface BufferPool {
  /** A free buffer of at least this length, up to `BUFFER_BYTES`. */
  take(leastBytes: number): PooledBuffer;
  /** Returns a buffer to the pool. */
  give(scratch: PooledBuffer): void;
}

/** Creates an empty pool. */
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
