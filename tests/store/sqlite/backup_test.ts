import { assert, assertEquals, assertRejects } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { backupStore, copyFile } from "../../../lib/store/sqlite/backup.ts";
import { openSqliteStore } from "../../../lib/store/sqlite/store.ts";
import { StoreError } from "../../../lib/store/store.ts";
import { entry, readChain } from "../behaviours_ledger.ts";
import { key } from "../behaviours_keys.ts";
import { inFolder } from "../in_folder.ts";

async function names(folder: string): Promise<string[]> {
  const found: string[] = [];
  for await (const { name } of Deno.readDir(folder)) found.push(name);
  return found.toSorted();
}

function dump(file: string): unknown[] {
  const db = new DatabaseSync(file);
  const schema = db.prepare(
    "SELECT type, name, sql FROM sqlite_schema WHERE name <> 'sqlite_sequence' ORDER BY type, name",
  ).all();
  const tables = schema.filter(({ type }) => type === "table").map(({ name }) => {
    const rows = db.prepare(`SELECT * FROM ${name}`);
    rows.setReadBigInts(true);
    return rows.all();
  });
  const facts = ["user_version", "integrity_check", "auto_vacuum"].map((name) => db.prepare(`PRAGMA ${name}`).get());
  db.close();
  return [schema, tables, facts];
}

Deno.test("backupStore() copies everything", () =>
  inFolder(async (folder) => {
    const store = openSqliteStore(`${folder}/sluice.db`, { own: true });
    await store.keys.add(key());
    await store.ledger.append([entry({ cost: 2n ** 63n - 1n }), entry({ id: "ü\n'", at: 0 })]);
    await store.close();
    await backupStore(`${folder}/sluice.db`, `${folder}/copy.db`);
    assertEquals(dump(`${folder}/copy.db`), dump(`${folder}/sluice.db`));
    if (Deno.build.os !== "windows") assertEquals(((await Deno.stat(`${folder}/copy.db`)).mode ?? 0) & 0o777, 0o600);
    assertEquals((await names(folder)).filter((name) => name.includes("copy")), ["copy.db"]);
  }));

Deno.test("backupStore() copies a store whose indexes an operator has analyzed", () =>
  inFolder(async (folder) => {
    const store = openSqliteStore(`${folder}/sluice.db`, { own: true });
    await store.ledger.append([entry()]);
    await store.close();
    const db = new DatabaseSync(`${folder}/sluice.db`);
    db.exec("ANALYZE");
    db.close();
    await backupStore(`${folder}/sluice.db`, `${folder}/copy.db`);
    const copy = openSqliteStore(`${folder}/copy.db`, { own: true });
    assertEquals((await readChain(copy.ledger, 1)).length, 1);
    await copy.close();
  }));

Deno.test("backupStore() copies a consistent, usable snapshot while the gateway serves", () =>
  inFolder(async (folder) => {
    const path = `${folder}/sluice.db`;
    const store = openSqliteStore(`${path}`, { own: true });
    const batch = (name: string) => Array.from({ length: 100 }, (_, index) => entry({ id: `${name}-${index}` }));
    for (let index = 0; index < 30; index++) await store.ledger.append(batch(`before${index}`));
    let copied = false;
    const copying = backupStore(path, `${folder}/copy.db`).then(() => copied = true);
    let during = 0;
    while (!copied) await store.ledger.append(batch(`during${during++}`));
    await copying;
    assert(during > 1);
    await store.ledger.append([entry({ id: "after" })]);
    const all = await readChain(store.ledger);
    await store.close();

    // Restored: the store is lost, and the copy takes its place.
    for (const name of await names(folder)) {
      if (name.startsWith("sluice.db")) await Deno.remove(`${folder}/${name}`);
    }
    await Deno.rename(`${folder}/copy.db`, path);
    const restored = openSqliteStore(`${path}`, { own: true });
    const kept = await readChain(restored.ledger);
    assert(kept.length >= 3000 && kept.length < all.length && kept.length % 100 === 0);
    assertEquals(kept, all.slice(0, kept.length));
    assertEquals((await restored.ledger.days(0)).map(({ requests }) => requests), [kept.length]);
    assertEquals(await restored.ledger.append([entry({ id: "before0-0" }), entry({ id: "after" })]), [false, true]);
    await restored.close();
  }));

Deno.test("a copy that is killed leaves no file of its name, which would look like an empty store", () =>
  inFolder(async (folder) => {
    const path = `${folder}/sluice.db`;
    const store = openSqliteStore(path, { own: true });
    await store.ledger.append(Array.from({ length: 600 }, (_, index) => entry({ id: `r${index}` })));
    await store.close();
    const copying = copyFile(path, `${folder}/copy.db`);
    copying.next();
    assertEquals((await names(folder)).includes("copy.db"), false);
    copying.return(undefined);
    assertEquals((await names(folder)).filter((name) => name.includes("copy")), []);
  }));

Deno.test("backupStore() never overwrites a file, and leaves nothing after a failure", () =>
  inFolder(async (folder) => {
    const path = `${folder}/sluice.db`;
    const store = openSqliteStore(`${path}`, { own: true });
    await Deno.writeTextFile(`${folder}/there`, "mine");
    const fails = async (from: string, to: string, words: string) => {
      const error = await assertRejects(() => backupStore(from, to), StoreError, words);
      assertEquals(error.message.startsWith(`Cannot copy the store "${from}" to "${to}": `), true);
    };
    await fails(path, `${folder}/there`, "already exists");
    assertEquals(await Deno.readTextFile(`${folder}/there`), "mine");
    await fails(path, path, "already exists");
    await fails(`${folder}/nothing.db`, `${folder}/copy.db`, "does not exist");
    await fails(path, `${folder}/nowhere/copy.db`, "does not exist");
    await fails(folder, `${folder}/copy.db`, "is not a file");
    await fails(`${folder}/there`, `${folder}/copy.db`, "");
    await Deno.writeTextFile(`${folder}/copy.db.partial`, "");
    await fails(path, `${folder}/copy.db`, "already exists");
    await Deno.remove(`${folder}/copy.db.partial`);
    assertEquals((await names(folder)).filter((name) => name.includes("copy")), []);
    assertEquals(await store.ledger.append([entry()]), [true]);
    await store.close();
  }));
