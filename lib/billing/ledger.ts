/** The ledger of a process: it writes entries in batches, and renews the budget holds of running requests. */
import type { Log } from "../log_events.ts";
import { GatewayError } from "../errors.ts";
import { type StartTimer, startTimer } from "../start_timer.ts";
import type { Entry, Hold, HoldAnswer, KeptEntry, LedgerStore } from "../store/ledger.ts";
import { EntryQueue } from "./entry_queue.ts";
import { Leases } from "./leases.ts";
import { RefusalQuota } from "./refusal_quota.ts";

/** Default lease of a hold, in milliseconds. */
const LEASE_MS = 60_000;

/** Value of `retry-after`, in milliseconds. */
const RETRY_MS = 1_000;

/** Dependencies of a ledger. */
export interface LedgerParts {
  store: LedgerStore;
  /** Unix time in milliseconds. */
  now: () => number;
  /** Monotonic time in milliseconds; absent: `performance.now`. */
  monotonic?: () => number;
  /** Lease of holds, in milliseconds; absent: a minute. */
  leaseMs?: number;
  /** Absent: `setTimeout`. */
  later?: StartTimer;
  /** Absent: nothing is logged. */
  log?: Log;
}

/** The ledger of a process. */
export interface Ledger {
  /** True if entries can be written, as far as is known. While false, no request that costs money may begin. */
  readonly healthy: boolean;
  readonly queued: number;
  /**
   * Writes an entry and ends its hold. Resolves once it is durable: true if it is new, false if its id exists, because
   * its hold had expired.
   * @throws {GatewayError} `overloaded` if it could not be written within 5 seconds; it is then never written
   */
  enter(entry: Entry): Promise<boolean>;
  /**
   * Writes the entry of a request without charge. Resolves at once, except while 10,000 entries are queued. Never
   * rejects: an entry that cannot be written for a minute is given up and logged. Requests that were refused before any
   * attempt make at most 600 entries per key and minute; the others are only counted in the log.
   */
  note(entry: Entry): Promise<void>;
  /**
   * Holds an amount for a request that lasts at most `forMs`, until its entry is written.
   * @throws {GatewayError} `overloaded` if the store cannot be reached
   */
  hold(hold: Omit<Hold, "leaseUntil">, forMs: number): Promise<HoldAnswer>;
  /**
   * Reads the charged and held amounts of keys and groups in their periods.
   * @throws {GatewayError} `overloaded` if the store cannot be reached
   */
  spending: LedgerStore["spending"];
  /**
   * Finds the entry of a request; undefined if there is none.
   * @throws {GatewayError} `overloaded` if the store cannot be reached
   */
  find(id: string): Promise<KeptEntry | undefined>;
  /** Voids expired holds, and enters their requests as lost. Also runs regularly while holds are open. */
  sweep(): Promise<void>;
  /** Resolves when all entries so far are durable or given up. */
  flush(): Promise<void>;
  /** Accepts no more entries, flushes, and stops all timers. The store stays open. */
  close(): Promise<void>;
}

/** Opens the ledger of a process over its store. */
export function createLedger(
  { store, now, monotonic = () => performance.now(), leaseMs = LEASE_MS, later = startTimer, log = () => {} }:
    LedgerParts,
): Ledger {
  const leases = new Leases({ store, now, monotonic, leaseMs, later, log });
  const queue = new EntryQueue({ store, leases, monotonic, later, log });

  const refusals = new RefusalQuota({ later, log });

  async function note(entry: Entry): Promise<void> {
    if (entry.ending === "refused" && !refusals.take(entry.keyId)) {
      if (entry.held === 0n || await release(entry.id)) return;
    }
    if (store.isWritable !== false || entry.held > 0n) return await queue.note(entry);
    log({ level: "warn", event: "entry_not_written", request_id: entry.id, cause: "no_room" });
    leases.end(entry.id, false);
  }

  /** Ends the hold of a request without an entry. Returns whether that succeeded; otherwise the entry ends it. */
  async function release(id: string): Promise<boolean> {
    try {
      await store.release([id]);
    } catch {
      return false;
    }
    leases.end(id, true);
    return true;
  }

  return {
    get healthy() {
      return store.isWritable !== false && queue.healthy;
    },
    get queued() {
      return queue.length;
    },
    enter: (entry) => queue.enter(entry),
    note,
    hold: (hold, forMs) => leases.hold(hold, forMs),
    spending: (spenders) => withRetryableError(() => store.spending(spenders)),
    find: (id) => withRetryableError(() => store.find(id)),
    sweep: () => leases.sweep(),
    flush: () => queue.flush(),
    async close() {
      refusals.close();
      await queue.close();
      leases.close();
    },
  };
}

/** Reads from the store. Replaces its errors by one after which a client may try again. */
async function withRetryableError<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (cause) {
    throw cause instanceof GatewayError ? cause : new GatewayError(
      "overloaded",
      "The gateway cannot read its ledger at the moment",
      { retryAfterMs: RETRY_MS, refusal: { outage: "ledger" }, cause },
    );
  }
}
