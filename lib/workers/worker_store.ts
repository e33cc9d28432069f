/** The store as a worker has it: the owner's, but for keys in a file, which it reads by itself. */
import type { StoreAddress } from "../config/address.ts";
import { openStore } from "../store/open.ts";
import type { AnswerStore } from "../store/answers.ts";
import type { KeyStore } from "../store/keys.ts";
import type { LedgerStore } from "../store/ledger.ts";
import type { SharedConfigs, Store } from "../store/store.ts";
import { type OwnerState, STORE } from "./contract.ts";
import type { Wire } from "./wire.ts";

/** Where the store is, and what the owner last said of it. */
export interface WorkerStoreParts {
  address: StoreAddress;
  state: () => OwnerState;
}

/**
 * Opens what a worker needs of the store. A key in a file is read in microseconds by whoever has it open; to ask the owner
 * takes both isolates several times as long. @throws {StoreError}
 */
export async function openWorkerStore(wire: Wire, { address, state }: WorkerStoreParts): Promise<Store> {
  const keys = wire.remote<KeyStore>(STORE.keys);
  const { add, list, change, revoke, rotate, touch } = keys;
  const file = address.kind === "sqlite" ? await openStore(address) : undefined;
  const findByHash = file?.keys.findByHash ?? keys.findByHash;
  const { latest, put } = wire.remote<SharedConfigs>(STORE.configs);
  return {
    keys: { add, list, change, revoke, rotate, touch, findByHash },
    ledger: wire.remote<LedgerStore>(STORE.ledger),
    answers: wire.remote<AnswerStore>(STORE.answers),
    ...(state().reach !== undefined && {
      shared: {
        // Only the owner reloads.
        configs: { latest, put, watch: () => () => {} },
        reach: () => state().reach ?? { up: true, downMs: 0, waiting: 0 },
      },
    }),
    close: () => file?.close() ?? Promise.resolve(),
  };
}
