/** The persistent state. Every store passes the same test suite. */
import type { Log } from "../log_events.ts";
import type { JsonObject } from "../json/mod.ts";
import type { AlertStore } from "./alerts.ts";
import type { AnswerStore } from "./answers.ts";
import type { KeyStore } from "./keys.ts";
import type { LedgerStore } from "./ledger.ts";
import type { OperatorStore } from "./operators.ts";

/** A configuration shared by the nodes of a store: the text of its file, which refers to secrets but contains none. */
export interface SharedConfig {
  /** Increases with every new text. */
  version: number;
  text: string;
  /** Unix time in milliseconds, by the store's clock. */
  at: number;
}

/** The shared configuration of the nodes. */
export interface SharedConfigs {
  /** The latest text; `undefined` if there is none. */
  latest(): Promise<SharedConfig | undefined>;
  /** Stores a text for all nodes and returns its version. A text identical to the latest is not stored again. */
  put(text: string): Promise<number>;
  /** Calls `changed` within seconds after another text was stored. Returns the function that stops watching. */
  watch(changed: () => void): () => void;
}

/** A report of a node about itself. */
export interface NodeReport {
  id: string;
  /** Unix time in milliseconds, by the node's clock. */
  at: number;
  facts: JsonObject;
}

/** The last report of each node. */
export interface NodeReports {
  /** Replaces a node's report, and removes those of others from before a moment, Unix time in milliseconds. */
  report(node: NodeReport, forgetBefore: number): Promise<void>;
  /** Reports since a moment, by the ids of their nodes. */
  list(since: number): Promise<NodeReport[]>;
  /** Withdraws the report of a node that ends. */
  leave(id: string): Promise<void>;
}

/** The additional parts of a store that several nodes share. */
export interface SharedStore {
  readonly configs: SharedConfigs;
  /** Reports of the nodes about themselves. */
  readonly nodes: NodeReports;
  /** Reachability of the store, and the number of waiting entries. */
  reach(): StoreReach;
  /** Milliseconds since the store's last answer; `undefined` while it is unreachable. Absent: the store is local. */
  heardMs?(): number | undefined;
}

/** Reachability of the store from this node. */
export interface StoreReach {
  /** False from the first failure to the next success. */
  up: boolean;
  /** Milliseconds since the start of the outage; 0 while it is up. */
  downMs: number;
  /** Entries waiting in the journal. */
  waiting: number;
}

/** Options for outages of a shared store. */
export interface SharedStoreOptions {
  /** Validity of cached keys during an outage, in milliseconds. */
  keyAgeMs: number;
  /** Path of the journal; absent: nothing can be entered during an outage. */
  journal?: string;
  /** Most waiting entries. */
  journalEntries: number;
  /** Lease of this node's holds, in milliseconds; absent: a minute. */
  leaseMs?: number;
  /** Logs events of the store. */
  log: Log;
}

/** Keys, ledger, answers and alerts. Reads see earlier writes of other processes. */
export interface Store {
  readonly keys: KeyStore;
  /** The cost of every request. */
  readonly ledger: LedgerStore;
  /** Finished answers for repeated requests. */
  readonly answers: AnswerStore;
  /** Alerts queued for a webhook. */
  readonly alerts: AlertStore;
  /** Changes by operators, their sign-in links and ended sessions. */
  readonly operators: OperatorStore;
  /** Present if several nodes share the store. */
  readonly shared?: SharedStore;
  /** Closes the store, which cannot be used afterwards. */
  close(): Promise<void>;
}

/** A migration that was done. */
export interface Migrated {
  /** Steps applied before. */
  from: number;
  /** Steps applied now. */
  to: number;
  /** Path of the copy made before; absent if the store is not a file. */
  copy?: string;
}

/**
 * Checks the schema version of a store opened for reading. @throws {Error} if it is older or has no tables
 * @param version number of applied steps
 * @param current number of steps that this version knows
 */
export function requireCurrent(version: number, current: number): void {
  if (version === current) return;
  throw new Error(
    version === 0
      ? "it has no tables yet: start the gateway or create a key first"
      : `it has an older schema (version ${version}, this one needs ${current}): start the gateway of this ` +
        "version to migrate it",
  );
}

/** Explains that a newer version wrote the store. @param version applied steps @param current known steps */
export function newerStore(version: number, current: number): Error {
  return new Error(
    `it was written by a newer version of Sluice (schema version ${version}, known up to ${current}): start that version or ` +
      "restore an older backup",
  );
}

/** A store that cannot be opened. The message is for the operator. */
export class StoreError extends Error {
  override readonly name = "StoreError";
}
