import { openStore } from "../../lib/store/open.ts";
import { testLedger } from "./behaviours_ledger.ts";
import { inFolder } from "./in_folder.ts";

testLedger("the memory ledger", async (test) => {
  const store = openStore("memory:");
  await test(store.ledger);
  await store.close();
});

testLedger("the SQLite ledger", (test) =>
  inFolder(async (folder) => {
    const store = openStore(`sqlite:${folder}/sluice.db`, { own: true });
    try {
      await test(store.ledger);
    } finally {
      await store.close();
    }
  }));
