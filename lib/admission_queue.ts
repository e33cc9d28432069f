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
  /** Creates the error for a refused request; the default names uploads. */
  busy?: () => GatewayError;
}

/** Work that asks for room. */
export interface QueuedWork {
  /** The work's share of the limit; 1 by default. */
  size?: number;
  /** The API key that it is for; absent: it shares nothing with other work. */
  keyId?: string | undefined;
}

/** Admits work while its total size stays within a limit. The keys whose work waits take turns. */
export interface AdmissionQueue {
  /**
   * Waits for room. The returned function releases it and may be called more than once. Work larger than the limit is
   * admitted alone. A small request may overtake a waiting large one. Deno does not report a client that disconnects
   * before its body is read, so such an upload waits until its time is over.
   * @throws {GatewayError} `busy()` when the queue, or the key's share of it, is full or the wait is over; the signal's
   * reason once it aborts
   */
  enter(signal: AbortSignal, request?: QueuedWork): Promise<() => void>;
}

/** `retry-after` of refused requests, in milliseconds. */
const RETRY_MS = 2_000;

/**
 * Share of the room, and of the waiting places, that one API key may take, so that no key takes all from the others.
 */
const KEY_SHARE = 3 / 4;

interface Waiting {
  size: number;
  owner: Owner;
  admit(): void;
}

/** The work of one API key. */
interface Owner {
  keyId: string | undefined;
  /** Sum of the sizes of its admitted work. */
  admitted: number;
  waiting: number;
  /** Number of its latest admission. */
  turn: number;
}

/** Creates an admission queue. */
export function createAdmissionQueue(
  { concurrent, waiting, waitMs, busy = tooManyUploads }: AdmissionQueueLimits,
): AdmissionQueue {
  let admitted = 0;
  let turns = 0;
  const queue = new Set<Waiting>();
  /** Only keys with admitted or waiting work. */
  const owners = new Map<string, Owner>();

  function ownerOf(keyId: string | undefined): Owner {
    return keyId !== undefined && owners.get(keyId) || { keyId, admitted: 0, waiting: 0, turn: 0 };
  }

  function fits({ size, owner }: Pick<Waiting, "size" | "owner">): boolean {
    if (admitted === 0) return true;
    return admitted + size <= concurrent && (owner.admitted === 0 || owner.admitted + size <= concurrent * KEY_SHARE);
  }

  /** Changes what a key has here. */
  function count(
    owner: Owner,
    { admitted = 0, waiting = 0 }: Partial<Pick<Owner, "admitted" | "waiting">>,
  ): void {
    owner.admitted += admitted;
    owner.waiting += waiting;
    if (owner.keyId === undefined) return;
    if (owner.admitted + owner.waiting > 0) owners.set(owner.keyId, owner);
    else owners.delete(owner.keyId);
  }

  /** The earliest work that fits, of the key whose latest turn is longest ago. */
  function findNext(): Waiting | undefined {
    let next: Waiting | undefined;
    for (const found of queue) {
      if (fits(found) && (next === undefined || found.owner.turn < next.owner.turn)) next = found;
    }
    return next;
  }

  /** Admits work. The returned function releases it once. */
  function take({ size, owner }: Pick<Waiting, "size" | "owner">): () => void {
    admitted += size;
    owner.turn = ++turns;
    count(owner, { admitted: size });
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      admitted -= size;
      count(owner, { admitted: -size });
      for (let next = findNext(); next !== undefined; next = findNext()) next.admit();
    };
  }

  function wait(signal: AbortSignal, { size, owner }: Pick<Waiting, "size" | "owner">): Promise<() => void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => giveUp(busy()), waitMs);
      const abort = () => giveUp(signal.reason);
      signal.addEventListener("abort", abort, { once: true });
      const own: Waiting = {
        size,
        owner,
        admit() {
          const leave = take(own);
          stopWaiting();
          resolve(leave);
        },
      };
      function stopWaiting(): void {
        queue.delete(own);
        count(owner, { waiting: -1 });
        clearTimeout(timer);
        signal.removeEventListener("abort", abort);
      }
      function giveUp(reason: unknown): void {
        stopWaiting();
        reject(reason);
      }
      count(owner, { waiting: 1 });
      queue.add(own);
    });
  }

  return {
    async enter(signal, { size = 1, keyId } = {}) {
      signal.throwIfAborted();
      const work = { size, owner: ownerOf(keyId) };
      if (fits(work)) return take(work);
      if (queue.size >= waiting || work.owner.waiting + 1 > Math.max(1, waiting * KEY_SHARE)) throw busy();
      return await wait(signal, work);
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
