/** A queue of ledger entries that are written in batches, with retries while the store fails. */
import { describeFailure } from "../causes.ts";
import { GatewayError } from "../errors.ts";
import type { Log } from "../log_events.ts";
import type { StartTimer } from "../start_timer.ts";
import type { Entry, LedgerStore } from "../store/ledger.ts";
import type { Leases } from "./leases.ts";

/** Dependencies of a queue. */
export interface EntryQueueParts {
  store: Pick<LedgerStore, "append">;
  /** Ends the hold of every entry that became durable or was given up. */
  leases: Pick<Leases, "end">;
  /** Monotonic time in milliseconds. */
  monotonic: () => number;
  later: StartTimer;
  log: Log;
}

/** Maximum number of entries of one write. */
const MAX_BATCH = 256;
/**
 * Under load, a write waits up to `MAX_GATHER_MS` for more entries: a write costs about 200,000 CPU cycles, each entry
 * in it about 30. Load means that the previous write ended at most `RECENT_MS` ago, and that at least `BUSY_ENTRIES`
 * entries were in it or were queued meanwhile.
 */
const BUSY_ENTRIES = 4;
const RECENT_MS = 10;
const MAX_GATHER_MS = 1;
/**
 * Share of the previous load that a write waits for. Clients whose requests ended in one batch send their next requests
 * at about the same time. Waiting for 75 % of them avoids tiny writes; the others are queued during the write.
 */
const GATHERED_SHARE = 0.75;
/** Queue length from which on requests wait for all entries. */
const MAX_QUEUED = 10_000;
/** Time limit for an entry for which a request waits, in milliseconds. */
const AWAITED_LIMIT_MS = 5_000;
/** Time limit for other entries, in milliseconds: as long as the lease of a hold lasts without renewals. */
const OTHER_LIMIT_MS = 60_000;
/** Pause after a failed write, in milliseconds: the first one, and the longest one, as each failure doubles it. */
const FIRST_PAUSE_MS = 20;
const MAX_PAUSE_MS = 1_000;
/** Value of `retry-after`, in milliseconds. */
const RETRY_AFTER_MS = 1_000;

interface Queued {
  entry: Entry;
  /** Monotonic time at which it was queued, in milliseconds. */
  since: number;
  /** True if its request waits for it. */
  isAwaited: boolean;
  /** Resolves when it is durable or given up; absent if nothing waits. */
  done?: PromiseWithResolvers<boolean>;
  /** Number of successful writes at the time when a write of only this entry failed; absent if none has failed. */
  failedAloneAfter?: number;
}

const RESOLVED = Promise.resolve();

/** A queue of entries to be written. */
export class EntryQueue {
  readonly #parts: EntryQueueParts;
  #queue: Queued[] = [];
  #writing = false;
  #writingSince = 0;
  #failing = false;
  #closing = false;
  /** Maximum number of entries of the next write. */
  #maxEntries = MAX_BATCH;
  #pauseMs = FIRST_PAUSE_MS;
  #successes = 0;
  /** Queue length when the last write ended, including its own entries, and the time of that. */
  #lastLoad = 0;
  #lastWriteEndedAt = 0;
  /** Queue length for which the next write waits, and the function that ends the wait. */
  #gatheredLength = 0;
  #endGathering: (() => void) | undefined;
  /** Ends the pause after a failed write. */
  #endPause: (() => void) | undefined;
  #flushing = 0;

  constructor(parts: EntryQueueParts) {
    this.#parts = parts;
  }

  get length(): number {
    return this.#queue.length;
  }

  /** False after a write has failed, until one succeeds, and while a write takes 5 seconds or more. */
  get healthy(): boolean {
    return !this.#failing && !(this.#writing && this.#parts.monotonic() - this.#writingSince >= AWAITED_LIMIT_MS);
  }

  /**
   * Appends an entry for which a request waits. Resolves once it is durable: true if it is new, false if an entry of
   * this id existed.
   * @throws {GatewayError} `overloaded` after 5 seconds without success; the entry is then never written
   */
  enter(entry: Entry): Promise<boolean> {
    if (this.#closing) return Promise.reject(notEntered());
    const done = Promise.withResolvers<boolean>();
    this.#push({ entry, since: this.#parts.monotonic(), isAwaited: true, done });
    return done.promise;
  }

  /**
   * Appends an entry that no request waits for. Resolves at once, or if the queue is full, when the entry is durable or
   * given up. Never rejects.
   */
  note(entry: Entry): Promise<void> {
    if (this.#closing) {
      this.#parts.leases.end(entry.id, false);
      return RESOLVED;
    }
    const isFull = this.#queue.length >= MAX_QUEUED;
    const queued = { entry, since: this.#parts.monotonic(), isAwaited: isFull };
    this.#push(queued);
    return isFull ? this.#outcomeOf(queued).then(nothing, nothing) : RESOLVED;
  }

  /** Resolves when all entries queued so far are durable or given up. */
  async flush(): Promise<void> {
    this.#flushing++;
    this.#endGathering?.();
    await Promise.allSettled(this.#queue.map((queued) => this.#outcomeOf(queued)));
    this.#flushing--;
  }

  /** Accepts no more entries, and flushes. */
  close(): Promise<void> {
    this.#closing = true;
    if (this.#queue.length === 0) this.#endPause?.();
    return this.flush();
  }

  #push(queued: Queued): void {
    this.#queue.push(queued);
    // The first entry is written at once; those that arrive meanwhile share the next write.
    if (!this.#writing) void this.#write();
    else if (this.#queue.length >= this.#gatheredLength) this.#endGathering?.();
  }

  async #write(): Promise<void> {
    this.#writing = true;
    // After a failure, empty writes find out whether the store works again: requests are refused until then.
    while (this.#queue.length > 0 || this.#isTesting) {
      this.#writingSince = this.#parts.monotonic();
      if (this.#lastLoad >= BUSY_ENTRIES && this.#writingSince - this.#lastWriteEndedAt < RECENT_MS) {
        await this.#gather();
      }
      const batch = this.#queue.slice(0, this.#maxEntries);
      const entries: Entry[] = [];
      for (const { entry } of batch) entries.push(entry);
      let areNew: readonly boolean[];
      try {
        areNew = await this.#parts.store.append(entries);
      } catch (cause) {
        this.#fail(batch, cause);
        if ((this.#queue.length > 0 || this.#isTesting) && !isRefusal(cause)) await this.#pause();
        continue;
      }
      this.#lastLoad = this.#queue.length;
      this.#lastWriteEndedAt = this.#parts.monotonic();
      this.#queue.splice(0, batch.length);
      this.#succeed(batch, areNew);
    }
    this.#writing = false;
  }

  get #isTesting(): boolean {
    return this.#failing && !this.#closing;
  }

  #gather(): Promise<void> | undefined {
    this.#gatheredLength = Math.min(this.#maxEntries, Math.ceil(this.#lastLoad * GATHERED_SHARE));
    if (this.#queue.length >= this.#gatheredLength || this.#flushing > 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const end = () => {
      this.#endGathering = undefined;
      cancelTimer();
      resolve();
    };
    const cancelTimer = this.#parts.later(end, MAX_GATHER_MS);
    this.#endGathering = end;
    return promise;
  }

  #succeed(batch: readonly Queued[], areNew: readonly boolean[]): void {
    if (this.#failing) this.#parts.log({ level: "info", event: "ledger_recovered", waiting: this.#queue.length });
    this.#failing = false;
    this.#successes++;
    this.#pauseMs = FIRST_PAUSE_MS;
    this.#maxEntries = Math.min(MAX_BATCH, this.#maxEntries * 2);
    for (const [index, { entry, done }] of batch.entries()) {
      this.#parts.leases.end(entry.id, true);
      done?.resolve(areNew[index] ?? false);
    }
  }

  /** Retries in smaller writes after a failure, so that one invalid entry does not block the others. */
  #fail(batch: readonly Queued[], cause: unknown): void {
    this.#maxEntries = Math.max(1, batch.length >> 1);
    this.#lastLoad = 0;
    const now = this.#parts.monotonic();
    const [first] = batch;
    if (first !== undefined && batch.length === 1) {
      this.#queue.shift();
      // The entry failed alone twice, and others were written in between: the entry is at fault, not the store.
      const failsAgain = first.failedAloneAfter !== undefined && first.failedAloneAfter < this.#successes;
      if (failsAgain || isRefusal(cause)) return this.#giveUp(first, cause);
      first.failedAloneAfter = this.#successes;
      this.#queue.push(first);
    }
    if (isRefusal(cause)) return;
    if (!this.#failing) {
      this.#parts.log({
        level: "error",
        event: "ledger_failed",
        ...describeFailure(cause),
        waiting: this.#queue.length,
      });
    }
    this.#failing = true;
    const isLate = (queued: Queued) => now - queued.since >= this.#timeLimitOf(queued);
    const late = this.#queue.filter(isLate);
    this.#queue = this.#queue.filter((queued) => !isLate(queued));
    for (const queued of late) this.#giveUp(queued, cause);
  }

  #timeLimitOf({ isAwaited }: Queued): number {
    return isAwaited || this.#closing ? AWAITED_LIMIT_MS : OTHER_LIMIT_MS;
  }

  #giveUp({ entry, isAwaited, done }: Queued, cause: unknown): void {
    this.#parts.log({
      level: "error",
      event: "entry_not_written",
      request_id: entry.id,
      ...describeFailure(cause),
    });
    this.#parts.leases.end(entry.id, false);
    if (isAwaited) done?.reject(notEntered(cause));
    else done?.resolve(false);
  }

  /** Waits after a failure, each time twice as long. */
  #pause(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancelTimer = this.#parts.later(resolve, this.#pauseMs);
    this.#endPause = () => {
      cancelTimer();
      resolve();
    };
    this.#pauseMs = Math.min(MAX_PAUSE_MS, this.#pauseMs * 2);
    return promise;
  }

  #outcomeOf(queued: Queued): Promise<boolean> {
    queued.done ??= Promise.withResolvers<boolean>();
    return queued.done.promise;
  }
}

/** Returns the error for a request whose entry or hold could not be written. */
export function notEntered(cause?: unknown): GatewayError {
  return new GatewayError("overloaded", "The gateway cannot write its ledger at the moment", {
    retryAfterMs: RETRY_AFTER_MS,
    refusal: { outage: "ledger" },
    ...(cause !== undefined && { cause }),
  });
}

/** Returns whether a working store refused the entry itself: trying again cannot help. */
function isRefusal(cause: unknown): boolean {
  return cause instanceof RangeError;
}

function nothing(): void {}
