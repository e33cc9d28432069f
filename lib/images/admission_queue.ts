/** How much is done at one time: uploads that are read, pixels in memory. Others wait, not too many and not too long. */
import { GatewayError } from "../errors.ts";

/** What a gate lets through. */
export interface AdmissionQueueLimits {
  /** Sum of the sizes of what is inside at one time: uploads that are read, each of size 1, or pixels. */
  concurrent: number;
  /** Requests that may wait for it. */
  waiting: number;
  /** Longest wait, in milliseconds. */
  waitMs: number;
  /** The error for those that are turned away; absent: that of uploads. */
  busy?: () => GatewayError;
}

/** A gate that requests pass. */
export interface AdmissionQueue {
  /**
   * Resolves when there is room, to what must be called once it is free again. What is larger than all the room has it for
   * itself. A small request may overtake a large one that waits. The server hardly notices that a
   * client has gone before its body is read: such an upload keeps its place in the queue until its wait is over.
   * @param size 1 where it is not given
   * @throws {GatewayError} `busy` where too many wait, or it has waited too long; the signal's reason once it aborts
   */
  enter(signal: AbortSignal, size?: number): Promise<() => void>;
}

/** When to try again after being turned away, in milliseconds. */
const RETRY_MS = 2_000;

/** One that waits. */
interface Waiting {
  size: number;
  admit(): void;
}

/** Opens a gate. */
export function createAdmissionQueue(
  { concurrent, waiting, waitMs, busy = tooManyUploads }: AdmissionQueueLimits,
): AdmissionQueue {
  let inside = 0;
  const queue = new Set<Waiting>();

  function fits(size: number): boolean {
    return inside === 0 || inside + size <= concurrent;
  }

  function leave(size: number): void {
    inside -= size;
    for (const next of queue) if (fits(next.size)) next.admit();
  }

  /** Takes a place. What it returns gives it back, once. */
  function take(size: number): () => void {
    inside += size;
    let left = false;
    return () => {
      if (left) return;
      left = true;
      leave(size);
    };
  }

  function wait(signal: AbortSignal, size: number): Promise<() => void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => giveUp(busy()), waitMs);
      const abort = () => giveUp(signal.reason);
      signal.addEventListener("abort", abort, { once: true });
      const own: Waiting = {
        size,
        admit() {
          stopWaiting();
          resolve(take(size));
        },
      };
      function stopWaiting(): void {
        queue.delete(own);
        clearTimeout(timer);
        signal.removeEventListener("abort", abort);
      }
      function giveUp(reason: unknown): void {
        stopWaiting();
        reject(reason);
      }
      queue.add(own);
    });
  }

  return {
    async enter(signal, size = 1) {
      signal.throwIfAborted();
      if (fits(size)) return take(size);
      if (queue.size >= waiting) throw busy();
      return await wait(signal, size);
    },
  };
}

function tooManyUploads(): GatewayError {
  return new GatewayError("limited", "Cannot take another upload now: too many are being read", {
    retryAfterMs: RETRY_MS,
    // The body has not been read.
    headers: { connection: "close" },
  });
}
