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

/** Work that wants to be admitted. */
export interface QueuedWork {
  /** The work's share of the limit; 1 by default. */
  size?: number;
  /** Id of the API key that it is for; absent: no share of a key is checked. */
  keyId?: string | undefined;
}

/** Admits work while its total size stays within a limit. API keys with waiting work take turns. */
export interface AdmissionQueue {
  /**
   * Waits until the work may begin. The returned function ends the work's share and may be called more than once. Work
   * larger than the limit is admitted alone. Small work may overtake large work that waits. Deno does not report a
   * client that disconnects before its body is read, so the upload of such a client waits until its time is over.
   * @throws {GatewayError} `busy()` when the queue, or the key's share of it, is full or the wait is over; the signal's
   * reason once it aborts
   */
  enter(signal: AbortSignal, request?: QueuedWork): Promise<() => void>;
}

/** `retry-after` of refused requests, in milliseconds. */
const RETRY_MS = 2_000;

/**
 * Share of the admitted size, of the waiting requests, and of drained answers that one API key may take, so that others
 * are served too.
 */
export const KEY_SHARE = 3 / 4;

interface Waiting {
  size: number;
  owner: Owner;
  admit(): void;
}

/** The work of one API key. */
interface Owner {
  keyId: string | undefined;
  /** Sum of the sizes of its admitted work. */
  admittedSize: number;
  /** Count of its waiting requests. */
  waiting: number;
  /** Sequence number of its latest admission, over all keys; 0: none yet. */
  lastAdmission: number;
}

/** Creates an admission queue. */
export function createAdmissionQueue(
  { concurrent, waiting, waitMs, busy = tooManyUploads }: AdmissionQueueLimits,
): AdmissionQueue {
  let admittedSize = 0;
  let admissions = 0;
  const queue = new Set<Waiting>();
  /** Only keys with admitted or waiting work. */
  const owners = new Map<string, Owner>();

  function ownerOf(keyId: string | undefined): Owner {
    return (keyId !== undefined && owners.get(keyId)) || { keyId, admittedSize: 0, waiting: 0, lastAdmission: 0 };
  }

  function fits({ size, owner }: Pick<Waiting, "size" | "owner">): boolean {
    if (admittedSize === 0) return true;
    if (admittedSize + size > concurrent) return false;
    return owner.admittedSize === 0 || owner.admittedSize + size <= concurrent * KEY_SHARE;
  }

  /** Adds to the counts of a key, and forgets the key when both are zero. */
  function count(
    owner: Owner,
    { admittedSize = 0, waiting = 0 }: Partial<Pick<Owner, "admittedSize" | "waiting">>,
  ): void {
    owner.admittedSize += admittedSize;
    owner.waiting += waiting;
    if (owner.keyId === undefined) return;
    if (owner.admittedSize + owner.waiting > 0) owners.set(owner.keyId, owner);
    else owners.delete(owner.keyId);
  }

  /** Returns the earliest waiting work that fits, of the key whose latest admission is longest ago. */
  function findNext(): Waiting | undefined {
    let next: Waiting | undefined;
    for (const work of queue) {
      if (fits(work) && (next === undefined || work.owner.lastAdmission < next.owner.lastAdmission)) next = work;
    }
    return next;
  }

  /** Admits work. The returned function releases it once. */
  function admitNow({ size, owner }: Pick<Waiting, "size" | "owner">): () => void {
    admittedSize += size;
    owner.lastAdmission = ++admissions;
    count(owner, { admittedSize: size });
    let released = false;
    return () => {
      if (released) return;
      released = true;
      admittedSize -= size;
      count(owner, { admittedSize: -size });
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
          const release = admitNow(own);
          stopWaiting();
          resolve(release);
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
      if (fits(work)) return admitNow(work);
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
