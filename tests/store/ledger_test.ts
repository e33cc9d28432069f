import { openMemoryStore } from "../../lib/store/sqlite/memory.ts";
import { openSqliteStore } from "../../lib/store/sqlite/store.ts";
import { testLedger } from "./behaviours_ledger.ts";
import { inFolder } from "./in_folder.ts";

testLedger("the memory ledger", async (test) => {
  const store = openMemoryStore();
  await test(store.ledger);
  await store.close();
});

testLedger("the SQLite ledger", (test) =>
  inFolder(async (folder) => {
    const store = openSqliteStore(`${folder}/sluice.db`, { own: true });
    try {
      await test(store.ledger);
    } finally {
      await store.close();
    }
  }));
