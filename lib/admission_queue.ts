/** A bounded queue in front of work that takes memory, such as reading uploads or holding pixels. */
import { GatewayError } from "./errors.ts";

/** Limits of an admission queue. */
export interface AdmissionQueueLimits {
  /** Largest sum of the sizes of all admitted work: a count of uploads, or pixels. */
  concurrent: number;
  /** Requests that may wait. */
  waiting: number;
  /** Longest wait, in milliseconds. */
  waitMs: number;
  /** Creates the error for a refused request; the default speaks of uploads. */
  busy?: () => GatewayError;
}

/** Admits work while its total size stays within a limit. */
export interface AdmissionQueue {
  /**
   * Waits for room. The returned function releases it and may be called more than once. Work larger than the limit is
   * admitted alone. A small request may overtake a waiting large one. Deno does not report a client that disconnects
   * before its body is read, so such an upload waits until its time is over.
   * @param size the work's share of the limit; 1 by default
   * @throws {GatewayError} `busy()` when the queue is full or the wait is over; the signal's reason once it aborts
   */
  enter(signal: AbortSignal, size?: number): Promise<() => void>;
}

/** `retry-after` of refused requests, in milliseconds. */
const RETRY_MS = 2_000;

interface Waiting {
  size: number;
  admit(): void;
}

/** Creates an admission queue. */
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

  /** Admits work. The returned function releases it once. */
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
  return new GatewayError("limited", "Too many uploads are in progress: try again later", {
    retryAfterMs: RETRY_MS,
    // The unread body makes the connection unusable for another request.
    headers: { connection: "close" },
  });
}
