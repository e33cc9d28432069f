/** Finds the store that the configuration names. */
import type { StoreAddress } from "../config/address.ts";
import { openMemoryStore } from "./memory.ts";
import { openSqliteStore } from "./sqlite.ts";
import type { SharedStoreOptions, Store } from "./store.ts";

/** How a store is opened. */
export interface OpenOptions {
  /**
   * True for the process that serves from it. Of a file there can be one: without it keys can be changed, and the ledger
   * can be read and pruned, but nothing can be held or entered. A store in memory is always its process's own. Of a
   * Postgres database there can be many: they keep what they need while it is out of reach.
   */
  own?: boolean;
  /** How a process that serves from a store of several nodes gets along without it for a while. */
  shared?: SharedStoreOptions;
}

/** Opens a store. @throws {StoreError} where it cannot be opened, or is another process's own */
export async function openStore(address: StoreAddress, { own = false, shared }: OpenOptions = {}): Promise<Store> {
  switch (address.kind) {
    case "memory":
      return openMemoryStore();
    case "sqlite":
      return openSqliteStore(address.path, { own });
    case "postgres": {
      // Only who uses it pays for loading it.
      const { openPostgresStore } = await import("./postgres.ts");
      return await openPostgresStore(address.url, own ? shared : undefined);
    }
  }
}
