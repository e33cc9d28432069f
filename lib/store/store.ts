/** The state that outlives the process. Every store behaves the same: one test suite runs against each. */
import type { AlertStore } from "./alerts.ts";
import type { AnswerStore } from "./answers.ts";
import type { KeyStore } from "./keys.ts";
import type { LedgerStore } from "./ledger.ts";

/** A configuration that the nodes of a store have in common: the text of its file. It names secrets and holds none. */
export interface SharedConfig {
  /** Grows with every text that is put. */
  version: number;
  text: string;
  /** Unix time in milliseconds, by the store's clock. */
  at: number;
}

/** The configuration that nodes have in common. */
export interface SharedConfigs {
  /** The latest text; `undefined` if there is none. */
  latest(): Promise<SharedConfig | undefined>;
  /** Puts a text for all nodes and returns its version. An identical latest text is not put again. */
  put(text: string): Promise<number>;
  /** Calls back soon after another one was put, at the latest after some seconds. Returns the function that ends that. */
  watch(changed: () => void): () => void;
}

/** The additional parts of a store that several nodes share. */
export interface SharedStore {
  readonly configs: SharedConfigs;
  /** The reachability of the store, and the entries waiting for it. */
  reach(): StoreReach;
  /** Milliseconds since the store answered last; `undefined` while it is out of reach. Absent: the store is local. */
  heardMs?(): number | undefined;
}

/** Reachability of the store from this node. */
export interface StoreReach {
  /** False from the first thing that failed to the first that worked again. */
  up: boolean;
  /** Milliseconds since it was out of reach first; 0 while it is up. */
  downMs: number;
  /** Entries that wait in the journal. */
  waiting: number;
}

/** Options for outages of a shared store. */
export interface SharedStoreOptions {
  /** Validity of cached keys during an outage, in milliseconds. */
  keyAgeMs: number;
  /** Path of the file for entries that wait; absent: there is none, and nothing can be entered meanwhile. */
  journal?: string;
  /** Most entries that wait. */
  journalEntries: number;
  /** Lease of this node's holds, in milliseconds; absent: a minute. */
  leaseMs?: number;
  /** Logs events of the store. */
  log: (line: StoreLine) => void;
}

/** A line of the log about a store. */
export interface StoreLine {
  level: "info" | "warn" | "error";
  event: string;
  [fact: string]: string | number | boolean | undefined;
}

/** Keys, the ledger and answers. Reads see earlier writes of other processes. */
export interface Store {
  readonly keys: KeyStore;
  /** The cost of every request. */
  readonly ledger: LedgerStore;
  /** Finished answers, for repeats of their requests. */
  readonly answers: AnswerStore;
  /** Alerts on their way to a webhook. */
  readonly alerts: AlertStore;
  /** Present where several nodes share the store. */
  readonly shared?: SharedStore;
  /** Frees what the store holds. The store cannot be used afterwards. */
  close(): Promise<void>;
}

/** A migration that was done. */
export interface Migrated {
  /** Number of steps that had run before. */
  from: number;
  /** Number of steps that have run now. */
  to: number;
  /** Path of the copy of the file as it was; absent where the store is no file. */
  copy?: string;
}

/**
 * Checks the shape of a store that is opened to read. @throws {Error} where it is older, or has no tables
 * @param version number of steps that have run
 * @param current number of steps that this version knows
 */
export function requireCurrent(version: number, current: number): void {
  if (version === current) return;
  throw new Error(
    version === 0
      ? "it has no tables yet: start the gateway, or make a key, first"
      : `it is of an older version of Sluice (shape ${version}, this one needs ${current}): start the gateway of this ` +
        "version, which brings it up to date",
  );
}

/** Explains that a store was written by a newer version. @param version steps that have run @param current steps known */
export function newerStore(version: number, current: number): Error {
  return new Error(
    `it was written by a newer version of Sluice (shape ${version}, known up to ${current}): start that version, or ` +
      "restore a copy of the store as it was before",
  );
}

/** A store that cannot be opened. The message is for the operator. */
export class StoreError extends Error {
  override readonly name = "StoreError";
}
