import { openSqliteStore } from "../../lib/store/sqlite/store.ts";
import { testKeys } from "./behaviours_keys.ts";
import { inFolder } from "./in_folder.ts";

testKeys("the SQLite store", (test) =>
  inFolder(async (folder) => {
    const store = openSqliteStore(`${folder}/sluice.db`);
    await test(store.keys);
    await store.close();
  }));
