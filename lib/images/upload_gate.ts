/** How many uploads are read at one time. The others wait, unread, and not too many of them nor too long. */
import { GatewayError } from "../errors.ts";

/** What a gate lets through. */
export interface GateLimits {
  /** Uploads read at one time. */
  concurrent: number;
  /** Uploads that may wait for it. */
  waiting: number;
  /** Longest wait, in milliseconds. */
  waitMs: number;
}

/** A gate that uploads pass. */
export interface UploadGate {
  /**
   * Resolves when the upload may be read, to what must be called once it has been. The server hardly notices that a
   * client has gone before its body is read: such an upload keeps its place in the queue until its wait is over.
   * @throws {GatewayError} `limited` where too many wait, or it has waited too long; the signal's reason once it aborts
   */
  enter(signal: AbortSignal): Promise<() => void>;
}

/** When to try again after being turned away, in milliseconds. */
const RETRY_MS = 2_000;

/** Opens a gate. */
export function createUploadGate({ concurrent, waiting, waitMs }: GateLimits): UploadGate {
  let inside = 0;
  const queue = new Set<() => void>();

  function leave(): void {
    inside--;
    const [next] = queue;
    next?.();
  }

  /** Takes a place. What it returns gives it back, once. */
  function take(): () => void {
    inside++;
    let left = false;
    return () => {
      if (left) return;
      left = true;
      leave();
    };
  }

  function wait(signal: AbortSignal): Promise<() => void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => giveUp(busy()), waitMs);
      const abort = () => giveUp(signal.reason);
      signal.addEventListener("abort", abort, { once: true });
      function stopWaiting(): void {
        queue.delete(admit);
        clearTimeout(timer);
        signal.removeEventListener("abort", abort);
      }
      function admit(): void {
        stopWaiting();
        resolve(take());
      }
      function giveUp(reason: unknown): void {
        stopWaiting();
        reject(reason);
      }
      queue.add(admit);
    });
  }

  return {
    async enter(signal) {
      signal.throwIfAborted();
      if (inside < concurrent) return take();
      if (queue.size >= waiting) throw busy();
      return await wait(signal);
    },
  };
}

function busy(): GatewayError {
  return new GatewayError("limited", "Cannot take another upload now: too many are being read", {
    retryAfterMs: RETRY_MS,
    // The body has not been read.
    headers: { connection: "close" },
  });
}
