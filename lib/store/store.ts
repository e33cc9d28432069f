/** What the gateway keeps between starts. Every store behaves the same: one suite of tests runs against each. */
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
  /** The one that was put last; `undefined` where there never was any. */
  latest(): Promise<SharedConfig | undefined>;
  /** Puts a text for all nodes. The one that is there already is not put again. Returns its version. */
  put(text: string): Promise<number>;
  /** Calls back soon after another one was put, at the latest after some seconds. Returns the function that ends that. */
  watch(changed: () => void): () => void;
}

/** What a store of several nodes has beside. */
export interface SharedStore {
  readonly configs: SharedConfigs;
  /** Whether the store answers, and what this node gets along with while it does not. */
  reach(): StoreReach;
  /** Milliseconds since the store answered last; `undefined` while it is out of reach. Absent in a worker. */
  heardMs?(): number | undefined;
}

/** How far a node is without its store. */
export interface StoreReach {
  /** False from the first thing that failed to the first that worked again. */
  up: boolean;
  /** Milliseconds since it was out of reach first; 0 while it is up. */
  downMs: number;
  /** Entries that wait in the journal. */
  waiting: number;
}

/** How a node gets along without its store for a while. */
export interface SharedStoreOptions {
  /** How long keys that were seen before serve without it, in milliseconds. */
  keyAgeMs: number;
  /** Path of the file for entries that wait; absent: there is none, and nothing can be entered meanwhile. */
  journal?: string;
  /** Most entries that wait. */
  journalEntries: number;
  /** How long what this node holds outlives it, in milliseconds; absent: a minute. */
  leaseMs?: number;
  /** Told of what happens to it. */
  log: (line: StoreLine) => void;
}

/** A line of the log about a store. */
export interface StoreLine {
  level: "info" | "warn" | "error";
  event: string;
  [fact: string]: string | number | boolean | undefined;
}

/** Where keys, the ledger and answers are kept. Reads see what another process wrote before them. */
export interface Store {
  readonly keys: KeyStore;
  /** What every request cost. */
  readonly ledger: LedgerStore;
  /** Finished answers, for repeats of their requests. */
  readonly answers: AnswerStore;
  /** What a store of several nodes has beside; absent where one process alone serves from it. */
  readonly shared?: SharedStore;
  /** Frees what the store holds. The store cannot be used afterwards. */
  close(): Promise<void>;
}

/** What was done to a store of an older version. */
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

/** A store that cannot be opened. The message is for the operator. */
export class StoreError extends Error {
  override readonly name = "StoreError";
}
