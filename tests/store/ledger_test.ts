import { openMemoryStore } from "../../lib/store/sqlite/memory.ts";
import { openSqliteStore } from "../../lib/store/sqlite/store.ts";
import type { LedgerStore } from "../../lib/store/ledger.ts";
import { testLedger } from "./behaviours_ledger.ts";
import { testSearch } from "./behaviours_search.ts";
import { testSums } from "./behaviours_sums.ts";
import { inFolder } from "./in_folder.ts";

type LedgerTest = (ledger: LedgerStore) => Promise<void>;

async function inMemory(test: LedgerTest): Promise<void> {
  const store = openMemoryStore();
  await test(store.ledger);
  await store.close();
}

async function inFile(test: LedgerTest): Promise<void> {
  await inFolder(async (folder) => {
    const store = openSqliteStore(`${folder}/sluice.db`, { own: true });
    try {
      await test(store.ledger);
    } finally {
      await store.close();
    }
  });
}

for (const testStore of [testLedger, testSearch, testSums]) testStore("the SQLite ledger", inFile);

// Its searches and sums are the queries of the SQLite ledger.
testLedger("the memory ledger", inMemory);
