/** Finds the store that the configuration names. */
import { openMemoryStore } from "./memory.ts";
import { openSqliteStore } from "./sqlite.ts";
import type { Store } from "./store.ts";

/** Opens `sqlite:PATH` or `memory:`. @throws {StoreError} where it cannot be opened */
export function openStore(address: string): Store {
  return address === "memory:" ? openMemoryStore() : openSqliteStore(address.slice("sqlite:".length));
}
