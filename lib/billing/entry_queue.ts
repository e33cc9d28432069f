/** Entries on their way into the ledger: many become durable with one write. */
import { faultOf } from "../causes.ts";
import { GatewayError, nameOf } from "../errors.ts";
import type { Entry } from "../store/ledger.ts";

/** Runs something once after so many milliseconds; the function it returns calls it off. */
export type Later = (run: () => void, ms: number) => () => void;

/** A line of the log: an event with its facts. */
export type Log = (
  line: { level: "info" | "warn" | "error"; event: string; [fact: string]: string | number | boolean | undefined },
) => void;

/** Parts. */
export interface EntryQueueParts {
  /** Enters them all, or rejects and enters none: with a RangeError where one cannot be kept. Tells for each whether it is new. */
  append: (entries: readonly Entry[]) => Promise<boolean[]>;
  /** Called for every entry that is durable, or given up. */
  onEnd: (id: string, kept: boolean) => void;
  /** Milliseconds that only grow. */
  monotonic: () => number;
  later: Later;
  log: Log;
}

/** Entries on their way. */
export interface EntryQueue {
  /** True while the last write worked, and none is stuck. */
  readonly healthy: boolean;
  /** Number of entries. */
  readonly length: number;
  /**
   * Enters a request. Resolves when it is durable: true where it is new.
   * @throws {GatewayError} `overloaded` where that did not work for some seconds; it will not be entered then
   */
  enter(entry: Entry): Promise<boolean>;
  /** Enters a request that nothing depends on. Resolves at once while there is room, and never rejects. */
  note(entry: Entry): Promise<void>;
  /** Resolves when whatever was handed in before is durable or given up. */
  flush(): Promise<void>;
  /** Takes nothing more, and flushes. */
  close(): Promise<void>;
}

/** Entries of one write. */
const BATCH = 256;
/**
 * A write that followed another within `RECENT_MS`, and found or left that many entries, is worth waiting for: a write of its
 * own costs 200 thousand cycles beside the 30 of each entry in it. At most so long, in milliseconds.
 */
const SEVERAL = 4;
const RECENT_MS = 10;
const GATHER_MS = 1;
/**
 * Which part of them is waited for. Requests that one write ends are followed by others, and the first of those would have a
 * write of its own; the last part is on its way while the others are written, so that nothing stands still.
 */
const GATHERED = 0.75;
/** Entries on their way, above which all are waited for. */
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
  /** True where its request waits for it. */
  urgent: boolean;
  done?: PromiseWithResolvers<boolean>;
  /** Writes that had worked when one with this entry alone failed. */
  aloneAfter?: number;
}

const AT_ONCE = Promise.resolve();

/** Starts with nothing on its way. */
export function createEntryQueue({ append, onEnd, monotonic, later, log }: EntryQueueParts): EntryQueue {
  let queue: Queued[] = [];
  let writing = false;
  let writingSince = 0;
  let failing = false;
  let closing = false;
  /** Entries that the next write takes. */
  let room = BATCH;
  let pauseMs = FIRST_PAUSE_MS;
  /** Writes that worked. */
  let worked = 0;
  /** Entries that the last write had or left, and when it ended. */
  let flow = 0;
  let endedAt = 0;
  /** Those that the next one waits for, and what ends the wait. */
  let goal = 0;
  let endGathering: (() => void) | undefined;
  /** Number of pending flushes. */
  let flushing = 0;

  function push(entry: Entry, urgent: boolean): Queued {
    const queued: Queued = { entry, since: monotonic(), urgent };
    queue.push(queued);
    // The first one goes at once. Those that come while it is written go together.
    if (!writing) void write();
    else if (queue.length >= goal) endGathering?.();
    return queued;
  }

  async function write(): Promise<void> {
    writing = true;
    while (queue.length > 0) {
      writingSince = monotonic();
      if (flow >= SEVERAL && writingSince - endedAt < RECENT_MS) await gather();
      const batch = queue.slice(0, room);
      let fresh: readonly boolean[];
      try {
        fresh = await append(batch.map(({ entry }) => entry));
      } catch (cause) {
        fail(batch, cause);
        if (queue.length > 0 && !isRefusal(cause)) await pause();
        continue;
      }
      flow = queue.length;
      endedAt = monotonic();
      queue.splice(0, batch.length);
      succeed(batch, fresh);
    }
    writing = false;
  }

  function gather(): Promise<void> | undefined {
    goal = Math.min(room, Math.ceil(flow * GATHERED));
    if (queue.length >= goal || flushing > 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const end = () => {
      endGathering = undefined;
      callOff();
      resolve();
    };
    const callOff = later(end, GATHER_MS);
    endGathering = end;
    return promise;
  }

  function succeed(batch: readonly Queued[], fresh: readonly boolean[]): void {
    if (failing) log({ level: "info", event: "ledger_recovered", waiting: queue.length });
    failing = false;
    worked++;
    pauseMs = FIRST_PAUSE_MS;
    room = Math.min(BATCH, room * 2);
    batch.forEach(({ entry, done }, i) => {
      onEnd(entry.id, true);
      done?.resolve(fresh[i] ?? false);
    });
  }

  /** Smaller writes after one that failed: an entry that cannot be entered must not take others with it. */
  function fail(batch: readonly Queued[], cause: unknown): void {
    room = Math.max(1, batch.length >> 1);
    flow = 0;
    const now = monotonic();
    const [first] = batch;
    if (first !== undefined && batch.length === 1) {
      queue.shift();
      // It failed alone, others worked, it failed alone again: it is the entry, and not the store.
      const failsAgain = first.aloneAfter !== undefined && first.aloneAfter < worked;
      if (failsAgain || isRefusal(cause)) return giveUp(first, cause);
      first.aloneAfter = worked;
      queue.push(first);
    }
    if (isRefusal(cause)) return;
    if (!failing) {
      log({
        level: "error",
        event: "ledger_failed",
        cause: nameOf(cause),
        fault: faultOf(cause),
        waiting: queue.length,
      });
    }
    failing = true;
    const isLate = (queued: Queued) => now - queued.since >= patience(queued);
    const late = queue.filter(isLate);
    queue = queue.filter((queued) => !isLate(queued));
    for (const queued of late) giveUp(queued, cause);
  }

  function patience({ urgent }: Queued): number {
    return urgent || closing ? WAIT_MS : KEEP_MS;
  }

  function giveUp({ entry, urgent, done }: Queued, cause: unknown): void {
    log({
      level: "error",
      event: "entry_not_written",
      request_id: entry.id,
      cause: nameOf(cause),
      fault: faultOf(cause),
    });
    onEnd(entry.id, false);
    if (urgent) done?.reject(notEntered(cause));
    else done?.resolve(false);
  }

  function pause(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    later(resolve, pauseMs);
    pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2);
    return promise;
  }

  function done(queued: Queued): Promise<boolean> {
    queued.done ??= Promise.withResolvers<boolean>();
    return queued.done.promise;
  }

  async function flush(): Promise<void> {
    flushing++;
    endGathering?.();
    await Promise.allSettled(queue.map(done));
    flushing--;
  }

  return {
    get length() {
      return queue.length;
    },
    get healthy() {
      return !failing && !(writing && monotonic() - writingSince >= WAIT_MS);
    },
    enter(entry) {
      return closing ? Promise.reject(notEntered()) : done(push(entry, true));
    },
    note(entry) {
      if (closing) {
        onEnd(entry.id, false);
        return AT_ONCE;
      }
      const isFull = queue.length >= MAX_QUEUED;
      const queued = push(entry, isFull);
      return isFull ? done(queued).then(nothing, nothing) : AT_ONCE;
    },
    flush,
    close() {
      closing = true;
      return flush();
    },
  };
}

/** The error of a request whose entry, or whose hold, could not be made. */
export function notEntered(cause?: unknown): GatewayError {
  return new GatewayError("overloaded", "The gateway cannot write its ledger at the moment", {
    retryAfterMs: RETRY_MS,
    ...(cause !== undefined && { cause }),
  });
}

/** Returns whether a working store refused an entry. */
function isRefusal(cause: unknown): boolean {
  return cause instanceof RangeError;
}

function nothing(): void {}
