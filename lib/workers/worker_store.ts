/** The store as a worker has it: the owner's, but for keys in a file, which it reads by itself. */
import type { StoreAddress } from "../config/address.ts";
import { openStore } from "../store/open.ts";
import type { LedgerStore } from "../store/ledger.ts";
import type { Store } from "../store/store.ts";
import { OWNER, type OwnerState } from "./contract.ts";
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
  const keys = wire.remote(OWNER.keys);
  const file = address.kind === "sqlite" ? await openStore(address) : undefined;
  return {
    keys: file === undefined ? keys : { ...keys, findByHash: file.keys.findByHash, version: file.keys.version },
    ledger: {
      ...wire.remote(OWNER.ledger),
      // Where the owner does not know, the ledger of this worker finds out.
      get takes() {
        return state().ledgerTakes;
      },
    } as LedgerStore,
    answers: wire.remote(OWNER.answers),
    ...(state().reach !== undefined && {
      shared: {
        // Only the owner reloads.
        configs: { ...wire.remote(OWNER.configs), watch: () => () => {} },
        reach: () => state().reach ?? { up: true, downMs: 0, waiting: 0 },
      },
    }),
    close: () => file?.close() ?? Promise.resolve(),
  };
}
