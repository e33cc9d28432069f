import { openMemoryStore } from "../../lib/store/memory.ts";
import { openSqliteStore } from "../../lib/store/sqlite/store.ts";
import { testKeys } from "./behaviours_keys.ts";
import { inFolder } from "./in_folder.ts";

testKeys("the memory store", async (test) => {
  const store = openMemoryStore();
  await test(store.keys);
  await store.close();
});

testKeys("the SQLite store", (test) =>
  inFolder(async (folder) => {
    const store = openSqliteStore(`${folder}/sluice.db`);
    await test(store.keys);
    await store.close();
  }));
