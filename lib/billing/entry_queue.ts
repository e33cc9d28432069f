/** Queue of entries for the ledger, which writes them in batches. */
import { faultOf } from "../causes.ts";
import { GatewayError, nameOf } from "../errors.ts";
import type { Log } from "../log_events.ts";
import type { Entry, LedgerStore } from "../store/ledger.ts";
import type { Leases } from "./leases.ts";

/** Starts a timer of `ms` milliseconds; the returned function cancels it. */
export type Later = (run: () => void, ms: number) => () => void;

/** Dependencies. */
export interface EntryQueueParts {
  store: Pick<LedgerStore, "append">;
  /** Ends the hold of every entry that became durable or was given up. */
  leases: Pick<Leases, "end">;
  /** Monotonic time in milliseconds. */
  monotonic: () => number;
  later: Later;
  log: Log;
}

/** The queue. */
export interface EntryQueue {
  /** True while the last write succeeded and none takes too long. */
  readonly healthy: boolean;
  /** Number of queued entries. */
  readonly length: number;
  /**
   * Appends an entry. Resolves to whether it is new, once it is durable.
   * @throws {GatewayError} `overloaded` after some seconds without success; the entry is then never written
   */
  enter(entry: Entry): Promise<boolean>;
  /** Appends an entry that no request waits for. Resolves at once while there is room, and never rejects. */
  note(entry: Entry): Promise<void>;
  /** Resolves when all entries queued so far are durable or given up. */
  flush(): Promise<void>;
  /** Accepts no more entries, and flushes. */
  close(): Promise<void>;
}

/** Entries of one write. */
const BATCH = 256;
/**
 * A write waits up to `GATHER_MS` for more entries if the previous one ended within `RECENT_MS` and had or left at
 * least `SEVERAL`: a write costs about 200,000 CPU cycles, each entry in it about 30.
 */
const SEVERAL = 4;
const RECENT_MS = 10;
const GATHER_MS = 1;
/**
 * Share of the previous batch that a write waits for. Clients whose requests ended in one batch send their next ones
 * about together; waiting for 75 % of them avoids tiny writes, and the others are queued while this one is written.
 */
const GATHERED = 0.75;
/** Queue length above which every entry is waited for. */
const MAX_QUEUED = 10_000;
/** Time limit for an entry whose request waits for it, in milliseconds. */
const WAIT_MS = 5_000;
/** Time limit for other entries: the lease of a hold without renewals, in milliseconds. */
const KEEP_MS = 60_000;
/** Pause after a write that failed, in milliseconds: at first, and at most. */
const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 1_000;
/** Value of `retry-after`, in milliseconds. */
const RETRY_MS = 1_000;

/** An entry on its way. */
interface Queued {
  entry: Entry;
  since: number;
  /** True if its request waits for it. */
  urgent: boolean;
  done?: PromiseWithResolvers<boolean>;
  /** Writes that had worked when one with this entry alone failed. */
  aloneAfter?: number;
}

const AT_ONCE = Promise.resolve();

/** Creates an empty queue. */
export function createEntryQueue(parts: EntryQueueParts): EntryQueue {
  return new BatchingQueue(parts);
}

class BatchingQueue implements EntryQueue {
  readonly #parts: EntryQueueParts;
  #queue: Queued[] = [];
  #writing = false;
  #writingSince = 0;
  #failing = false;
  #closing = false;
  /** Most entries of the next write. */
  #room = BATCH;
  #pauseMs = FIRST_PAUSE_MS;
  /** Number of successful writes. */
  #worked = 0;
  /** Entries that the last write had or left behind, and when it ended. */
  #flow = 0;
  #endedAt = 0;
  /** Queue length that the next write waits for, and the function that ends the wait. */
  #goal = 0;
  #endGathering: (() => void) | undefined;
  /** Number of pending flushes. */
  #flushing = 0;

  constructor(parts: EntryQueueParts) {
    this.#parts = parts;
  }

  get length(): number {
    return this.#queue.length;
  }

  get healthy(): boolean {
    return !this.#failing && !(this.#writing && this.#parts.monotonic() - this.#writingSince >= WAIT_MS);
  }

  enter(entry: Entry): Promise<boolean> {
    if (this.#closing) return Promise.reject(notEntered());
    const done = Promise.withResolvers<boolean>();
    this.#push({ entry, since: this.#parts.monotonic(), urgent: true, done });
    return done.promise;
  }

  note(entry: Entry): Promise<void> {
    if (this.#closing) {
      this.#parts.leases.end(entry.id, false);
      return AT_ONCE;
    }
    const isFull = this.#queue.length >= MAX_QUEUED;
    const queued = { entry, since: this.#parts.monotonic(), urgent: isFull };
    this.#push(queued);
    return isFull ? this.#done(queued).then(ignore, ignore) : AT_ONCE;
  }

  async flush(): Promise<void> {
    this.#flushing++;
    this.#endGathering?.();
    await Promise.allSettled(this.#queue.map((queued) => this.#done(queued)));
    this.#flushing--;
  }

  close(): Promise<void> {
    this.#closing = true;
    return this.flush();
  }

  #push(queued: Queued): void {
    this.#queue.push(queued);
    // The first entry is written at once; those that arrive meanwhile share the next write.
    if (!this.#writing) void this.#write();
    else if (this.#queue.length >= this.#goal) this.#endGathering?.();
  }

  async #write(): Promise<void> {
    this.#writing = true;
    while (this.#queue.length > 0) {
      this.#writingSince = this.#parts.monotonic();
      if (this.#flow >= SEVERAL && this.#writingSince - this.#endedAt < RECENT_MS) await this.#gather();
      const batch = this.#queue.slice(0, this.#room);
      const entries: Entry[] = [];
      for (const { entry } of batch) entries.push(entry);
      let fresh: readonly boolean[];
      try {
        fresh = await this.#parts.store.append(entries);
      } catch (cause) {
        this.#fail(batch, cause);
        if (this.#queue.length > 0 && !isRefusal(cause)) await this.#pause();
        continue;
      }
      this.#flow = this.#queue.length;
      this.#endedAt = this.#parts.monotonic();
      this.#queue.splice(0, batch.length);
      this.#succeed(batch, fresh);
    }
    this.#writing = false;
  }

  #gather(): Promise<void> | undefined {
    this.#goal = Math.min(this.#room, Math.ceil(this.#flow * GATHERED));
    if (this.#queue.length >= this.#goal || this.#flushing > 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const end = () => {
      this.#endGathering = undefined;
      callOff();
      resolve();
    };
    const callOff = this.#parts.later(end, GATHER_MS);
    this.#endGathering = end;
    return promise;
  }

  #succeed(batch: readonly Queued[], fresh: readonly boolean[]): void {
    if (this.#failing) this.#parts.log({ level: "info", event: "ledger_recovered", waiting: this.#queue.length });
    this.#failing = false;
    this.#worked++;
    this.#pauseMs = FIRST_PAUSE_MS;
    this.#room = Math.min(BATCH, this.#room * 2);
    for (const [index, { entry, done }] of batch.entries()) {
      this.#parts.leases.end(entry.id, true);
      done?.resolve(fresh[index] ?? false);
    }
  }

  /** Retries in smaller writes after a failure, so that one invalid entry does not block the others. */
  #fail(batch: readonly Queued[], cause: unknown): void {
    this.#room = Math.max(1, batch.length >> 1);
    this.#flow = 0;
    const now = this.#parts.monotonic();
    const [first] = batch;
    if (first !== undefined && batch.length === 1) {
      this.#queue.shift();
      // It failed alone twice, and other entries succeeded in between: the entry is at fault, not the store.
      const failsAgain = first.aloneAfter !== undefined && first.aloneAfter < this.#worked;
      if (failsAgain || isRefusal(cause)) return this.#giveUp(first, cause);
      first.aloneAfter = this.#worked;
      this.#queue.push(first);
    }
    if (isRefusal(cause)) return;
    if (!this.#failing) {
      this.#parts.log({
        level: "error",
        event: "ledger_failed",
        cause: nameOf(cause),
        fault: faultOf(cause),
        waiting: this.#queue.length,
      });
    }
    this.#failing = true;
    const isLate = (queued: Queued) => now - queued.since >= this.#patience(queued);
    const late = this.#queue.filter(isLate);
    this.#queue = this.#queue.filter((queued) => !isLate(queued));
    for (const queued of late) this.#giveUp(queued, cause);
  }

  #patience({ urgent }: Queued): number {
    return urgent || this.#closing ? WAIT_MS : KEEP_MS;
  }

  #giveUp({ entry, urgent, done }: Queued, cause: unknown): void {
    this.#parts.log({
      level: "error",
      event: "entry_not_written",
      request_id: entry.id,
      cause: nameOf(cause),
      fault: faultOf(cause),
    });
    this.#parts.leases.end(entry.id, false);
    if (urgent) done?.reject(notEntered(cause));
    else done?.resolve(false);
  }

  #pause(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#parts.later(resolve, this.#pauseMs);
    this.#pauseMs = Math.min(LONGEST_PAUSE_MS, this.#pauseMs * 2);
    return promise;
  }

  #done(queued: Queued): Promise<boolean> {
    queued.done ??= Promise.withResolvers<boolean>();
    return queued.done.promise;
  }
}

/** The error of a request whose entry or hold could not be written. */
export function notEntered(cause?: unknown): GatewayError {
  return new GatewayError("overloaded", "The gateway cannot write its ledger at the moment", {
    retryAfterMs: RETRY_MS,
    refusal: { outage: "ledger" },
    ...(cause !== undefined && { cause }),
  });
}

/** Returns whether a working store refused the entry itself. */
function isRefusal(cause: unknown): boolean {
  return cause instanceof RangeError;
}

function ignore(): void {}
