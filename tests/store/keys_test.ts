import { openStore } from "../../lib/store/open.ts";
import { testKeys } from "./behaviours_keys.ts";
import { inFolder } from "./in_folder.ts";

testKeys("the memory store", async (test) => {
  const store = openStore("memory:");
  await test(store.keys);
  await store.close();
});

testKeys("the SQLite store", (test) =>
  inFolder(async (folder) => {
    const store = openStore(`sqlite:${folder}/sluice.db`);
    await test(store.keys);
    await store.close();
  }));
