/** What the gateway keeps between starts. Every store behaves the same: one suite of tests runs against each. */
import type { AnswerStore } from "./answers.ts";
import type { KeyStore } from "./keys.ts";
import type { LedgerStore } from "./ledger.ts";

/** Where keys, the ledger and answers are kept. Reads see what another process wrote before them. */
export interface Store {
  readonly keys: KeyStore;
  /** What every request cost. */
  readonly ledger: LedgerStore;
  /** Finished answers, for repeats of their requests. */
  readonly answers: AnswerStore;
  /** Frees what the store holds. The store cannot be used afterwards. */
  close(): Promise<void>;
}

/** A store that cannot be opened. The message is for the operator. */
export class StoreError extends Error {
  override readonly name = "StoreError";
}
