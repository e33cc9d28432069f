/**
 * A ledger that stays usable while its store is unreachable: entries wait in the journal of this node.
 *
 * Holds during an outage: no hold can be made, so requests with a budget are refused. Open holds cannot be renewed, and
 * the first node that sweeps voids those whose leases have expired: the request becomes lost, its waiting entry is then
 * a duplicate, and the customer pays nothing. Therefore a node that reaches the store again first writes its waiting
 * entries, and voids no hold until the store has been reachable for a whole lease. By then every running node has ended
 * or renewed its own holds. A node that alone is cut off, or is down for longer, still loses the charges of its open
 * holds, at the operator's expense and never at the customer's.
 */
import type { Log } from "../../log_events.ts";
import { GatewayError } from "../../errors.ts";
import { type StartTimer, startTimer } from "../../start_timer.ts";
import { assertEntry } from "../entry_row.ts";
import type { Entry, LedgerStore } from "../ledger.ts";
import type { StoreReach } from "../store.ts";
import type { Journal } from "./journal.ts";
import { Reach } from "./reachability.ts";
import { codeOf } from "../../causes.ts";

/** Dependencies of a journaled ledger. */
export interface JournaledParts {
  /** Absent: no entry can be written while the store is unreachable. */
  journal?: Journal;
  /** Returns whether an error means that the store is unreachable. */
  isOutOfReach: (error: unknown) => boolean;
  /**
   * Replaces the connections when the store becomes unreachable: they may be lost without an error, or lead to a server
   * that has become a replica. It ends their calls after a while, since others may wait for them. Absent: there are none.
   */
  reconnect?: () => void;
  leaseMs: number;
  log: Log;
  /** Monotonic time in milliseconds; absent: `performance.now`. */
  monotonic?: () => number;
  /** Absent: `setTimeout`. */
  later?: StartTimer;
  /** Random numbers from 0 to 1, exclusive; absent: `Math.random`. */
  random?: () => number;
}

/**
 * A ledger that handles outages of its store. While the store is unreachable, calls that need it reject with a
 * GatewayError `overloaded`.
 */
export interface JournaledLedger extends LedgerStore {
  /** True if requests that cost money may begin, because their entries can be written as far as is known. */
  readonly isWritable: boolean;
  /** Returns whether the store is reachable, and the number of waiting entries. */
  reach(): Omit<StoreReach, "isReadable">;
  /** Returns the milliseconds since the store's last answer; `undefined` while it is unreachable. */
  msSinceAnswer(): number | undefined;
  /** Stops the background work and closes the journal. The store stays open. */
  close(): Promise<void>;
}

/** Wraps a ledger with a journal. Entries that an earlier process left are written to the ledger in the background. */
export function createJournaledLedger(ledger: LedgerStore, parts: JournaledParts): JournaledLedger {
  const { journal, leaseMs } = parts;
  const entries = new EntryWriter(ledger, parts);
  const { reach } = entries;
  return {
    get isWritable() {
      return reach.isUp && entries.waiting === 0 || (journal?.hasRoom ?? false);
    },
    ...(ledger.clock !== undefined && { clock: ledger.clock }),
    reach: () => ({ up: reach.isUp, downMs: reach.downMs, waiting: entries.waiting }),
    msSinceAnswer: () => reach.msSinceAnswer,
    async close() {
      await reach.close();
      await journal?.close();
    },
    append: (newEntries) => entries.append(newEntries),
    hold: (hold) => reach.ask(() => ledger.hold(hold)),
    spending: (spenders) => reach.ask(() => ledger.spending(spenders)),
    renew: (ids, leaseUntil) => reach.ask(() => ledger.renew(ids, leaseUntil)),
    release: (ids) => reach.ask(() => ledger.release(ids)),
    expire: (now) =>
      entries.waiting > 0 || reach.upMs < leaseMs ? Promise.resolve([]) : reach.ask(() => ledger.expire(now)),
    holds: () => reach.askLong(() => ledger.holds()),
    find: (id) => reach.ask(() => ledger.find(id)),
    spenders: (after) => reach.askLong(() => ledger.spenders(after)),
    entries: (from) => reach.askLong(() => ledger.entries(from)),
    entriesWithin: (span) => reach.askLong(() => ledger.entriesWithin(span)),
    durations: (spans, signal) => reach.askLong(() => ledger.durations(spans, signal)),
    usage: (query, signal) => reach.askLong(() => ledger.usage(query, signal)),
    upstreamDays: (query, signal) => reach.askLong(() => ledger.upstreamDays(query, signal)),
    sumsHead: () => reach.ask(() => ledger.sumsHead()),
    sumsOfStep: (kind, after) => reach.askLong(() => ledger.sumsOfStep(kind, after)),
    sumUp: () => reach.askLong(() => ledger.sumUp()),
    search: (search, signal) => reach.askLong(() => ledger.search(search, signal)),
    topUsers: (of, signal) => reach.askLong(() => ledger.topUsers(of, signal)),
    userSums: (from) => reach.askLong(() => ledger.userSums(from)),
    lastSeq: () => reach.ask(() => ledger.lastSeq()),
    days: (since, enough) => reach.askLong(() => ledger.days(since, enough)),
    prune: (...days) => reach.askLong(() => ledger.prune(...days)),
    start: () => reach.ask(() => ledger.start()),
  };
}

/** Writes entries to the ledger or, while the store is unreachable, to the journal. */
class EntryWriter {
  readonly reach: Reach;
  readonly #ledger: LedgerStore;
  readonly #parts: JournaledParts;
  /** Counts of the entries that were replayed since the journal was last empty, for the log. */
  #replayed = { entries: 0, not_new: 0 };

  constructor(ledger: LedgerStore, parts: JournaledParts) {
    this.#ledger = ledger;
    this.#parts = parts;
    this.reach = new Reach({
      probe: () => ledger.start(),
      isOutOfReach: parts.isOutOfReach,
      answers: (rise) => this.#replay(rise),
      hasWork: () => this.waiting > 0,
      reconnect: parts.reconnect ?? (() => {}),
      log: parts.log,
      monotonic: parts.monotonic ?? (() => performance.now()),
      later: parts.later ?? startTimer,
      random: parts.random ?? Math.random,
    });
  }

  get waiting(): number {
    return this.#parts.journal?.waiting ?? 0;
  }

  async append(entries: readonly Entry[]): Promise<boolean[]> {
    const { journal } = this.#parts;
    for (const entry of entries) assertEntry(entry);
    if (journal === undefined || (this.reach.isUp && journal.waiting === 0)) {
      try {
        return await this.reach.ask(() => this.#ledger.append(entries));
      } catch (cause) {
        if (isRefused(cause)) throw cause;
        // Any other error, such as a full disk, also means that the store cannot be written now.
        if (!(cause instanceof GatewayError)) this.reach.fail(cause);
        if (journal === undefined) throw cause;
      }
    }
    // The store may have written the entries although its answer was lost. The replay then finds duplicates.
    await journal.append(entries);
    return entries.map(() => true);
  }

  async #replay(rise: () => void): Promise<void> {
    const { journal } = this.#parts;
    if (journal === undefined || journal.waiting === 0) return;
    await journal.play(async (entries) => {
      const isNew = await this.#replayBatch(journal, entries);
      rise();
      this.#replayed.entries += entries.length;
      this.#replayed.not_new += isNew.filter((isEntryNew) => !isEntryNew).length;
    });
    this.#parts.log({ level: "info", event: "journal_replayed", ...this.#replayed });
    this.#replayed = { entries: 0, not_new: 0 };
  }

  /** Writes waiting entries to the ledger, one by one if the batch is rejected. Returns for each whether it is new. */
  async #replayBatch(journal: Journal, entries: Entry[]): Promise<boolean[]> {
    try {
      return await this.reach.within(this.#ledger.append(entries));
    } catch (cause) {
      if (!isRefused(cause)) throw cause;
    }
    if (entries.length > 1) {
      const isNew: boolean[] = [];
      for (const single of entries) isNew.push(...await this.#replayBatch(journal, [single]));
      return isNew;
    }
    await journal.putAside(entries);
    this.#parts.log({ level: "error", event: "journal_entry_refused", request_id: entries[0]?.id });
    return [true];
  }
}

/** SQLSTATEs of Postgres for values that it cannot store, and for violated constraints. */
const REFUSAL_CODES = /^(22...|23502|23514)$/;

/** Returns whether a working store rejected an entry itself. */
function isRefused(error: unknown): boolean {
  return error instanceof RangeError || REFUSAL_CODES.test(codeOf(error) ?? "");
}
