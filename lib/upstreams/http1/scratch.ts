/** Buffers that are needed for a moment: kept to be used again. */

/** Length of one, in bytes. */
export const SCRATCH_BYTES = 64 * 1024;
/** Most that are kept. */
const KEPT = 16;

/** Buffers of one length. */
export interface Scratches {
  /** One that nobody else uses; what stands in it is old. */
  take(): Uint8Array<ArrayBuffer>;
  /** Gives one back. */
  give(scratch: Uint8Array<ArrayBuffer>): void;
}

/** Starts with none. */
export function createScratches(): Scratches {
  const free: Uint8Array<ArrayBuffer>[] = [];
  return {
    take: () => free.pop() ?? new Uint8Array(SCRATCH_BYTES),
    give: (scratch) => void (free.length < KEPT && free.push(scratch)),
  };
}
