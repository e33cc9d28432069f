/** The gateway's way to its ledger: entries that become durable together, and holds that live as long as their requests. */
import { GatewayError } from "../errors.ts";
import type { BudgetClaim, Entry, Hold, HoldAnswer, KeptEntry, LedgerStore } from "../store/ledger.ts";
import { createEntryQueue, type Later, type Log } from "./entry_queue.ts";
import { createLeases } from "./leases.ts";
import type { Amount } from "./money.ts";

/** Default lease of a hold, in milliseconds. */
const LEASE_MS = 60_000;

/** Value of `retry-after`, in milliseconds. */
const RETRY_MS = 1_000;

/** Parts. */
export interface LedgerParts {
  store: LedgerStore;
  /** Unix time in milliseconds. */
  now: () => number;
  /** Milliseconds that only grow; absent: since the process began. */
  monotonic?: () => number;
  /** Lease of holds, in milliseconds; absent: a minute. */
  leaseMs?: number;
  /** Absent: the timers of the process. */
  later?: Later;
  /** Absent: nothing is told. */
  log?: Log;
}

/** The ledger of a process. */
export interface Ledger {
  /** True while entries can be written, as far as is known. While not, no request that costs may begin. */
  readonly healthy: boolean;
  /** Entries on their way. */
  readonly queued: number;
  /**
   * Enters a request and ends its hold. Resolves when it is durable: true where it is new, false where its id is taken,
   * as its hold had run out.
   * @throws {GatewayError} `overloaded` where it could not be written for 5 seconds: it never will be then
   */
  enter(entry: Entry): Promise<boolean>;
  /**
   * Enters a request without charge, for which nobody needs to wait: resolves at once, except while 10,000 entries are
   * on their way. Never rejects. What cannot be written for a minute is given up, and logged.
   */
  note(entry: Entry): Promise<void>;
  /**
   * Sets an amount aside for a request that lasts at most `forMs`, until its entry is there.
   * @throws {GatewayError} `overloaded` where the store cannot tell
   */
  hold(hold: Omit<Hold, "leaseUntil">, forMs: number): Promise<HoldAnswer>;
  /**
   * What is left of a budget, after what was charged and what is held.
   * @throws {GatewayError} `overloaded` where the store cannot tell
   */
  left(claim: BudgetClaim): Promise<Amount>;
  /**
   * Reads the charged and held amounts of keys and groups in their periods.
   * @throws {GatewayError} `overloaded` where the store cannot tell
   */
  spending: LedgerStore["spending"];
  /** @throws {GatewayError} `overloaded` where the store cannot tell */
  find(id: string): Promise<KeptEntry | undefined>;
  /** Voids holds whose lease is over, and enters their requests as lost. Also done while requests hold something. */
  sweep(): Promise<void>;
  /** Resolves when whatever was entered before is durable, or given up. */
  flush(): Promise<void>;
  /** Takes nothing more, flushes, and stops all timers. The store stays open. */
  close(): Promise<void>;
}

/** Opens the ledger of a process over its store. */
export function createLedger(
  { store, now, monotonic = () => performance.now(), leaseMs = LEASE_MS, later = withTimeout, log = silent }:
    LedgerParts,
): Ledger {
  const leases = createLeases({ store, now, monotonic, leaseMs, later, log });
  const queue = createEntryQueue({
    append: (entries) => store.append(entries),
    onEnd: (id, kept) => leases.end(id, kept),
    monotonic,
    later,
    log,
  });

  function note(entry: Entry): Promise<void> {
    if (store.takes !== false || entry.held > 0n) return queue.note(entry);
    log({ level: "warn", event: "entry_not_written", request_id: entry.id, cause: "no_room" });
    leases.end(entry.id, false);
    return Promise.resolve();
  }

  return {
    get healthy() {
      // A store that knows has the last word: the next write may go elsewhere than the one before.
      return store.takes ?? queue.healthy;
    },
    get queued() {
      return queue.length;
    },
    enter: (entry) => queue.enter(entry),
    note,
    hold: (hold, forMs) => leases.hold(hold, forMs),
    left: (claim) => told(() => store.left(claim)),
    spending: (spenders) => told(() => store.spending(spenders)),
    find: (id) => told(() => store.find(id)),
    sweep: () => leases.sweep(),
    flush: () => queue.flush(),
    async close() {
      await queue.close();
      leases.close();
    },
  };
}

/** Turns the error of an unreachable store into one that a client may retry. */
async function told<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (cause) {
    throw cause instanceof GatewayError ? cause : new GatewayError(
      "overloaded",
      "The gateway cannot read its ledger at the moment",
      { retryAfterMs: RETRY_MS, cause },
    );
  }
}

/** The timers of the process, as a `Later`. */
export function withTimeout(run: () => void, ms: number): () => void {
  const timer = setTimeout(run, ms);
  return () => clearTimeout(timer);
}

function silent(): void {}
