/** Finds the store that the configuration names. */
import type { StoreAddress } from "../config/address.ts";
import { openMemoryStore } from "./sqlite/memory.ts";
import { openSqliteReader, openSqliteStore } from "./sqlite/store.ts";
import type { Migrated, SharedStoreOptions, Store } from "./store.ts";

/** Options for opening a store. */
export interface OpenOptions {
  /**
   * True for the process that serves from it. Of a file there can be one: without it keys can be changed, and the ledger
   * can be read and pruned, but nothing can be held or entered. A store in memory is always its process's own. Of a
   * Postgres database there can be many: they keep what they need while it is out of reach.
   */
  own?: boolean;
  /** True for what only reads: the store is there, and neither made nor brought up to date. What would change it fails. */
  readOnly?: boolean;
  /** Options of a process that serves from a shared store, for outages of the store. */
  shared?: SharedStoreOptions;
  /** Called when the store was brought up to date. */
  migrated?: (facts: Migrated) => void;
}

/** Opens a store. @throws {StoreError} where it cannot be opened, or is another process's own */
export async function openStore(
  address: StoreAddress,
  { own = false, readOnly = false, shared, migrated }: OpenOptions = {},
): Promise<Store> {
  switch (address.kind) {
    case "memory":
      return openMemoryStore();
    case "sqlite":
      return readOnly
        ? openSqliteReader(address.path)
        : openSqliteStore(address.path, { own, ...(migrated !== undefined && { migrated }) });
    case "postgres": {
      // Only who uses it pays for loading it.
      const { openPostgresStore } = await import("./postgres/store.ts");
      return await openPostgresStore(address.url, {
        readOnly,
        ...(own && shared !== undefined && { serving: shared }),
        ...(migrated !== undefined && { migrated }),
      });
    }
  }
}
