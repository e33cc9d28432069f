/**
 * A ledger that stays usable while its store is out of reach: entries wait in the journal of this node meanwhile.
 *
 * What that means for holds: nobody can hold anything meanwhile, so requests with a budget are refused. What is held
 * already cannot be renewed, and a hold whose lease is over is voided by whichever node sweeps first: its request is lost
 * then, the entry that waits is not new when it comes, and the customer pays nothing. So a node that is back enters what
 * waits before anything else, and voids nothing before the store has been in reach for a whole lease: until then every node
 * that runs has entered or renewed what is its own. A node alone out of reach, or down for longer, still loses the charges of
 * what it held, to the house's cost, never to the customer's.
 */
import { assertEntry } from "../entry_check.ts";
import type { Entry, LedgerStore } from "../ledger.ts";
import type { StoreLine, StoreReach } from "../store.ts";
import type { Journal } from "./journal.ts";
import { codeOf, createReach } from "./reachability.ts";

/** Parts. */
export interface JournaledParts {
  /** Absent: nothing can be entered while the store is out of reach. */
  journal?: Journal;
  /** Returns whether an error means that the store is unreachable. */
  isOutOfReach: (error: unknown) => boolean;
  /** Lease of a hold, in milliseconds. */
  leaseMs: number;
  log: (line: StoreLine) => void;
  /** Milliseconds that only grow; absent: since the process began. */
  monotonic?: () => number;
  /** Absent: the timers of the process. */
  later?: (run: () => void, ms: number) => () => void;
  /** Numbers from 0 up to, not including, 1; absent: `Math.random`. */
  random?: () => number;
}

/** A ledger whose store may be out of reach. Whatever cannot wait rejects with a GatewayError `overloaded` meanwhile. */
export interface JournaledLedger extends LedgerStore {
  /** True while requests that cost may begin: their entries can be written, as far as is known. */
  readonly takes: boolean;
  /** The state of the store and the number of waiting entries. */
  reach(): StoreReach;
  /** Milliseconds since the store answered last; `undefined` while it is out of reach. */
  heardMs(): number | undefined;
  /** Ends what it does in the background and lets go of the journal. The store stays open. */
  close(): Promise<void>;
}

/** Puts a journal in front of a ledger. What an earlier process left in it is entered soon. */
export function journaled(ledger: LedgerStore, parts: JournaledParts): JournaledLedger {
  const { journal, isOutOfReach, leaseMs, log } = parts;
  const reach = createReach({
    probe: () => ledger.start(),
    isOutOfReach,
    answers: play,
    hasWork: () => waiting() > 0,
    log,
    monotonic: parts.monotonic ?? (() => performance.now()),
    later: parts.later ?? withTimeout,
    random: parts.random ?? Math.random,
  });

  /** Counts of the current replay. */
  let played = { entries: 0, not_new: 0 };

  function waiting(): number {
    return journal?.waiting ?? 0;
  }

  async function append(entries: readonly Entry[]): Promise<boolean[]> {
    for (const entry of entries) assertEntry(entry);
    if (journal === undefined || (reach.isUp && journal.waiting === 0)) {
      try {
        return await reach.ask(() => ledger.append(entries));
      } catch (cause) {
        if (isRefused(cause)) throw cause;
        // Whatever else it is, such as a full disk: it cannot be written to now.
        reach.fail(cause);
        if (journal === undefined) throw cause;
      }
    }
    // Perhaps they are in the store all the same. Then they are not new when they come again.
    await journal.append(entries);
    return entries.map(() => true);
  }

  async function play(rise: () => void): Promise<void> {
    if (journal === undefined || journal.waiting === 0) return;
    await journal.play(async (entries) => {
      const isNew = await enter(journal, entries);
      rise();
      played.entries += entries.length;
      played.not_new += isNew.filter((each) => !each).length;
    });
    log({ level: "info", event: "journal_replayed", ...played });
    played = { entries: 0, not_new: 0 };
  }

  /** Enters what waited, each alone where they cannot go together. Returns for each whether it is new. */
  async function enter(journal: Journal, entries: Entry[]): Promise<boolean[]> {
    try {
      return await reach.within(ledger.append(entries));
    } catch (cause) {
      if (!isRefused(cause)) throw cause;
    }
    const [entry, ...others] = entries;
    if (entry === undefined) return [];
    if (others.length === 0) {
      await journal.putAside(entries);
      log({ level: "error", event: "journal_entry_refused", request_id: entry.id });
      return [true];
    }
    const isNew: boolean[] = [];
    for (const each of entries) isNew.push(...await enter(journal, [each]));
    return isNew;
  }

  return {
    get takes() {
      return reach.isUp && waiting() === 0 || (journal?.hasRoom ?? false);
    },
    ...(ledger.clock !== undefined && { clock: ledger.clock }),
    reach: () => ({ up: reach.isUp, downMs: reach.downMs, waiting: waiting() }),
    heardMs: () => reach.heardMs,
    async close() {
      await reach.close();
      await journal?.close();
    },
    append,
    hold: (hold) => reach.ask(() => ledger.hold(hold)),
    left: (claim) => reach.ask(() => ledger.left(claim)),
    renew: (ids, leaseUntil) => reach.ask(() => ledger.renew(ids, leaseUntil)),
    expire: (now) => waiting() > 0 || reach.upMs < leaseMs ? Promise.resolve([]) : reach.ask(() => ledger.expire(now)),
    holds: () => reach.askLong(() => ledger.holds()),
    find: (id) => reach.ask(() => ledger.find(id)),
    entries: (from) => reach.askLong(() => ledger.entries(from)),
    entriesWithin: (span) => reach.askLong(() => ledger.entriesWithin(span)),
    usage: (query, signal) => reach.askLong(() => ledger.usage(query, signal)),
    days: (since, enough) => reach.askLong(() => ledger.days(since, enough)),
    prune: (beforeDay) => reach.askLong(() => ledger.prune(beforeDay)),
    start: () => reach.ask(() => ledger.start()),
  };
}

/** SQLSTATE of values that Postgres cannot store, and of violated constraints. */
const REFUSALS = /^(22...|23502|23514)$/;

/** Returns whether a working store refused the entry itself. */
function isRefused(error: unknown): boolean {
  return error instanceof RangeError || REFUSALS.test(codeOf(error) ?? "");
}

function withTimeout(run: () => void, ms: number): () => void {
  const timer = setTimeout(run, ms);
  return () => clearTimeout(timer);
}
