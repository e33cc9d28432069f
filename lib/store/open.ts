/** Opens the configured store. */
import type { StoreAddress } from "../config/address.ts";
import { openMemoryStore } from "./sqlite/memory.ts";
import { openSqliteReader, openSqliteStore } from "./sqlite/store.ts";
import type { Migrated, SharedStoreOptions, Store } from "./store.ts";

/** Options for opening a store. */
export interface OpenOptions {
  /**
   * True for a process that serves from the store. A SQLite file has one such process: others can change keys, and read
   * and prune the ledger, but cannot make holds or write entries. A Postgres database can have many, which cache what
   * they need during outages. A store in memory always belongs to its process.
   */
  own?: boolean;
  /** True for reading only: the store must exist and is not migrated. Writes fail. */
  readOnly?: boolean;
  /** Options for outages of a shared store, for a process that serves from it. */
  shared?: SharedStoreOptions;
  migrated?: (facts: Migrated) => void;
}

/** Opens a store. @throws {StoreError} if it cannot be opened, or another process serves from it */
export async function openStore(
  address: StoreAddress,
  { own = false, readOnly = false, shared, migrated }: OpenOptions = {},
): Promise<Store> {
  switch (address.kind) {
    case "memory":
      return openMemoryStore();
    case "sqlite":
      return readOnly ? openSqliteReader(address.path) : openSqliteStore(address.path, { own, migrated });
    case "postgres": {
      // Imported lazily: only installations with Postgres load the driver.
      const { openPostgresStore } = await import("./postgres/store.ts");
      return await openPostgresStore(address.url, {
        readOnly,
        ...(own && shared !== undefined && { serving: shared }),
        migrated,
      });
    }
  }
}
