/** A ledger that ends with the process. */
import type { LedgerStore } from "./ledger.ts";

/** Opens an empty ledger. */
export function openMemoryLedger(): LedgerStore {
  return {} as LedgerStore;
}
