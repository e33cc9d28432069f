/** The interface of stores, which keep the persistent state. All stores pass the same tests. */
import type { Log } from "../log_events.ts";
import type { JsonObject } from "../json/mod.ts";
import type { AlertStore } from "./alerts.ts";
import type { AnswerStore } from "./answers.ts";
import type { KeyStore } from "./keys.ts";
import type { LedgerStore } from "./ledger.ts";
import type { OperatorStore } from "./operators.ts";

/** A configuration that the nodes of a store share: the text of its file, which refers to secrets but contains none. */
export interface SharedConfig {
  /** Number of the text, which increases with every new text. */
  version: number;
  text: string;
  /** When the text was stored, Unix time in milliseconds by the store's clock. */
  at: number;
}

/** The shared configuration of the nodes. */
export interface SharedConfigs {
  /** Reads the latest text; `undefined` if there is none. */
  latest(): Promise<SharedConfig | undefined>;
  /** Stores a text for all nodes and returns its version. If it equals the latest text, returns the version of that. */
  put(text: string): Promise<number>;
  /** Calls `changed` within seconds after a new text was stored. Returns the function that ends this. */
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
  /** Replaces a node's report, and deletes reports of others from before `forgetBefore`, Unix time in milliseconds. */
  report(node: NodeReport, forgetBefore: number): Promise<void>;
  /** Lists the reports since a moment, Unix time in milliseconds, ordered by the ids of the nodes. */
  list(since: number): Promise<NodeReport[]>;
  /** Deletes the report of a node that ends. */
  leave(id: string): Promise<void>;
}

/** The additional parts of a store that several nodes use. */
export interface SharedStore {
  readonly configs: SharedConfigs;
  readonly nodes: NodeReports;
  /** Returns whether the store is reachable, and the number of entries that wait for it. */
  reach(): StoreReach;
  /**
   * Returns the milliseconds since the store's last answer, `undefined` while it is unreachable or unreadable. Absent if it is
   * local.
   */
  msSinceAnswer?(): number | undefined;
}

/** The reachability of the store from this node. */
export interface StoreReach {
  /** False from the first failure to the next success. */
  up: boolean;
  /** False if keys and their changes cannot be read. The store may answer nevertheless. */
  isReadable: boolean;
  /** Milliseconds since it became unreachable or unreadable; 0 while it is neither. */
  downMs: number;
  /** Number of entries that wait in the journal. */
  waiting: number;
}

/** Options for outages of a shared store. */
export interface SharedStoreOptions {
  /** Time for which cached keys stay valid during an outage, in milliseconds. */
  keyAgeMs: number;
  /** Path of the journal; absent: no entry can be written during an outage. */
  journal?: string;
  /** Maximum number of entries in the journal. */
  journalEntries: number;
  /** Lease of this node's holds, in milliseconds; absent: a minute. */
  leaseMs?: number;
  /** Logs events of the store. */
  log: Log;
}

/** A store. Reads see earlier writes of other processes. */
export interface Store {
  readonly keys: KeyStore;
  /** One entry for every request, with its cost. */
  readonly ledger: LedgerStore;
  /** Finished answers for repeated requests. */
  readonly answers: AnswerStore;
  readonly alerts: AlertStore;
  /** Changes by operators, their sign-in links and ended sessions. */
  readonly operators: OperatorStore;
  /** Present if several nodes share the store. */
  readonly shared?: SharedStore;
  /** Closes the store, which cannot be used afterwards. */
  close(): Promise<void>;
}

/** Facts of a migration. */
export interface Migrated {
  /** Number of steps that had been applied before. */
  from: number;
  /** Number of steps that are applied now. */
  to: number;
  /** Path of the copy that was made before; absent if the store is not a file. */
  copy?: string;
}

/** Callbacks about a migration, which may take minutes. */
export interface MigrationWatch {
  /** Called before it begins, or before a migration by another process is awaited. */
  migrating?: ((facts: Pick<Migrated, "from" | "to">) => void) | undefined;
  migrated?: ((facts: Migrated) => void) | undefined;
}

/**
 * Checks the schema version of a store that is opened for reading.
 * @param version number of steps that have been applied to it
 * @param current number of steps that this version of the program knows
 * @throws {Error} if the store is older, or has no tables
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

/**
 * Returns the error for a store that a newer version of the program wrote.
 * @param version number of steps that have been applied to it
 * @param current number of steps that this version of the program knows
 */
export function newerStore(version: number, current: number): Error {
  return new Error(
    `it was written by a newer version of Sluice (schema version ${version}, known up to ${current}): start that version or ` +
      "restore an older backup",
  );
}

/** Thrown if a store cannot be opened. Its message is for the operator. */
export class StoreError extends Error {
  override readonly name = "StoreError";
}
