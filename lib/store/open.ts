/** Finds the store that the configuration names. */
import { openMemoryStore } from "./memory.ts";
import { openSqliteStore } from "./sqlite.ts";
import type { Store } from "./store.ts";

/** How a store is opened. */
export interface OpenOptions {
  /**
   * True for the process that serves from it, of which there can be one. Without it keys can be changed, and the ledger can
   * be read and pruned, but nothing can be held or entered. A store in memory is always its process's own.
   */
  own?: boolean;
}

/** Opens `sqlite:PATH` or `memory:`. @throws {StoreError} where it cannot be opened, or is another process's own */
export function openStore(address: string, options: OpenOptions = {}): Store {
  return address === "memory:" ? openMemoryStore() : openSqliteStore(address.slice("sqlite:".length), options);
}
