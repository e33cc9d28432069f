/** A store that ends with the process. */
import { openMemoryAnswers } from "./memory_answers.ts";
import { openMemoryKeys } from "./memory_keys.ts";
import { openMemoryLedger } from "./memory_ledger.ts";
import type { Store } from "./store.ts";

/** Opens an empty store. */
export function openMemoryStore(): Store {
  return {
    keys: openMemoryKeys(),
    ledger: openMemoryLedger(),
    answers: openMemoryAnswers(),
    close: () => Promise.resolve(),
  };
}
