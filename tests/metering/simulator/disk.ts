/** What outlives a process: its store, in memory for thousands of runs, in a file for some. */
import type { LedgerStore } from "../../../lib/store/ledger.ts";
import { openMemoryLedger } from "../../../lib/store/memory_ledger.ts";
import { openSqliteStore } from "../../../lib/store/sqlite.ts";

/** A disk with a ledger on it. */
export interface Disk {
  /** The ledger as it is open now. */
  readonly ledger: LedgerStore;
  /** The process dies, and another one opens what is there. */
  crash(): Promise<void>;
  close(): Promise<void>;
}

/** A disk that is none. Whoever opens a ledger voids the holds of the dead: here that is done for it. */
export function openMemoryDisk(change: (store: LedgerStore) => LedgerStore = (store) => store): Disk {
  const ledger = change(openMemoryLedger());
  return {
    ledger,
    async crash() {
      await ledger.expire(Number.MAX_SAFE_INTEGER);
    },
    close: () => Promise.resolve(),
  };
}

/** A real file. A process that dies leaves its files as they are: the next one gets a copy made while they were open. */
export function openSqliteDisk(folder: string): Disk {
  let life = 0;
  const pathOf = () => `${folder}/life-${life}.db`;
  let store = openSqliteStore(pathOf(), { own: true });
  return {
    get ledger() {
      return store.ledger;
    },
    async crash() {
      const dead = pathOf();
      life++;
      for (const part of ["", "-wal"]) await Deno.copyFile(`${dead}${part}`, `${pathOf()}${part}`);
      await store.close();
      store = openSqliteStore(pathOf(), { own: true });
    },
    close: () => store.close(),
  };
}
