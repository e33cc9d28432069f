import { assert, assertEquals, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { MIGRATIONS } from "../../../lib/store/sqlite/migrations.ts";
import { openStore } from "../../../lib/store/open.ts";
import { openSqliteStore } from "../../../lib/store/sqlite/store.ts";
import { type Migrated, type Store, StoreError } from "../../../lib/store/store.ts";
import { entry } from "../behaviours_ledger.ts";
import { key } from "../behaviours_keys.ts";
import { inFolder } from "../in_folder.ts";

/** The shape of the first version that has a ledger. */
const OLDER = 4;

/** Makes a file of an older shape, with a key and entries. */
async function outdated(path: string): Promise<void> {
  const current = `${path}-current`;
  const store = openSqliteStore(current, { own: true });
  await store.keys.add(key());
  await store.ledger.append(Array.from({ length: 50 }, (_, index) => entry({ id: `r${index}` })));
  await store.close();
  const db = new DatabaseSync(path);
  db.exec(`PRAGMA journal_mode = WAL; ${MIGRATIONS.slice(0, OLDER).join("")} ATTACH '${current}' AS current`);
  for (const table of ["keys", "price_sheets", "entries", "days"]) {
    const columns = db.prepare(`PRAGMA main.table_info(${table})`).all().map(({ name }) => String(name)).join(", ");
    db.exec(`INSERT INTO ${table} (${columns}) SELECT ${columns} FROM current.${table}`);
  }
  db.exec(`PRAGMA user_version = ${OLDER}`);
  db.close();
  for (const end of ["", "-owner"]) await Deno.remove(current + end);
}

function change(path: string, sql: string): void {
  const db = new DatabaseSync(path);
  db.exec(sql);
  db.close();
}

function shapeOf(path: string): unknown {
  const db = new DatabaseSync(path, { readOnly: true });
  try {
    return Object.values(db.prepare("PRAGMA user_version").get() ?? {})[0];
  } finally {
    db.close();
  }
}

const PAGE = 4096;

function rootOf(path: string, name: string): number {
  const db = new DatabaseSync(path);
  const page = Number(db.prepare("SELECT rootpage FROM sqlite_schema WHERE name = ?").get(name)?.rootpage);
  db.close();
  return page;
}

async function overwrite(path: string, { at, bytes }: { at: number; bytes: Uint8Array }): Promise<void> {
  using file = await Deno.open(path, { write: true });
  await file.seek(at, Deno.SeekMode.Start);
  await file.write(bytes);
}

/** Every byte of the store and its log. */
async function bytesOf(path: string): Promise<Map<string, Uint8Array>> {
  const files = new Map<string, Uint8Array>();
  for (const end of ["", "-wal"]) {
    const bytes = await Deno.readFile(path + end).catch(() => undefined);
    // An empty log counts as absent.
    if (bytes !== undefined && bytes.length > 0) files.set(end, bytes);
  }
  return files;
}

async function namesIn(folder: string): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of Deno.readDir(folder)) names.push(name);
  return names.toSorted();
}

async function removeCopies(folder: string): Promise<void> {
  for (const name of await namesIn(folder)) {
    if (name.includes(".shape-")) await Deno.remove(`${folder}/${name}`);
  }
}

Deno.test("a migration copies the file first, and an older version can use the copy", async () => {
  for (const own of [true, false]) {
    await inFolder(async (folder) => {
      const path = `${folder}/sluice.db`;
      await outdated(path);
      const migrations: Migrated[] = [];
      const store = openSqliteStore(path, { own, migrated: (facts) => migrations.push(facts) });
      assertEquals(await store.keys.list(), [key()]);
      await store.close();
      const [migrated] = migrations;
      assert(migrated?.copy !== undefined && migrations.length === 1);
      assertEquals([migrated.from, migrated.to, shapeOf(path)], [OLDER, MIGRATIONS.length, MIGRATIONS.length]);
      assertEquals(migrated.copy.startsWith(`${await Deno.realPath(path)}.shape-${OLDER}-`), true, migrated.copy);
      if (Deno.build.os !== "windows") assertEquals(((await Deno.stat(migrated.copy)).mode ?? 0) & 0o777, 0o600);
      assertEquals(shapeOf(migrated.copy), OLDER);
      const copy = new DatabaseSync(migrated.copy, { readOnly: true });
      assertEquals(copy.prepare("SELECT count(*) AS count FROM entries").get(), { count: 50 });
      assertEquals(copy.prepare("SELECT count(*) AS count FROM sqlite_schema WHERE name = 'sums_head'").get(), {
        count: 0,
      });
      copy.close();
      // The next start has nothing to do.
      await openSqliteStore(path, { own, migrated: (facts) => migrations.push(facts) }).close();
      assertEquals([migrations.length, (await namesIn(folder)).filter((name) => name.includes("shape")).length], [
        1,
        1,
      ]);
    });
  }
});

Deno.test("a migration is announced before it begins, and nothing else is", () =>
  inFolder(async (folder) => {
    const path = `${folder}/sluice.db`;
    const said: string[] = [];
    const open = async () => {
      const store = await openStore({ kind: "sqlite", path }, {
        own: true,
        migrating: ({ from, to }) => said.push(`migrating ${from} ${to}`),
        migrated: ({ from, to }) => said.push(`migrated ${from} ${to}`),
      });
      await store.close();
    };
    await open();
    assertEquals(said, []);
    await Deno.remove(path);
    await outdated(path);
    await open();
    await open();
    assertEquals(said, [`migrating ${OLDER} ${MIGRATIONS.length}`, `migrated ${OLDER} ${MIGRATIONS.length}`]);
  }));

Deno.test("a migration replaces the copies of earlier attempts that were killed", () =>
  inFolder(async (folder) => {
    const path = `${folder}/sluice.db`;
    await outdated(path);
    const left = `${await Deno.realPath(path)}.shape-${OLDER}.unfinished`;
    for (const end of ["", ".partial", ".partial-journal"]) await Deno.writeTextFile(left + end, "unfinished");
    let copy = "";
    await openSqliteStore(path, { own: true, migrated: (facts) => copy = facts.copy ?? "" }).close();
    assertEquals((await namesIn(folder)).filter((name) => name.includes("shape")), [copy.slice(folder.length + 1)]);
    assertEquals(shapeOf(copy), OLDER);
  }));

Deno.test("a new file is neither checked nor copied", () =>
  inFolder(async (folder) => {
    const migrations: Migrated[] = [];
    await openSqliteStore(`${folder}/sluice.db`, { own: true, migrated: (facts) => migrations.push(facts) }).close();
    assertEquals([migrations, await namesIn(folder)], [[], ["sluice.db", "sluice.db-owner"]]);
  }));

Deno.test("a file that fails its check stays unchanged in every mode", async () => {
  /** Damage of a file, and the expected error. */
  const faults: [name: string, damage: (path: string) => void | Promise<void>, words: string][] = [
    ["an entry changed", (path) => {
      change(path, "DROP TRIGGER entries_stay; UPDATE entries SET cost = cost + 1 WHERE seq = 40");
    }, "the checksum of entry 40 of the ledger does not fit"],
    ["an index that lacks a row", (path) => {
      const page = rootOf(path, "entries_by_time");
      // The last byte of the page is the end of its first row.
      return overwrite(path, { at: page * PAGE - 1, bytes: Uint8Array.of(0x7b) });
    }, "the file is damaged"],
    ["a page overwritten", (path) => {
      const page = rootOf(path, "entries");
      return overwrite(path, { at: (page - 1) * PAGE, bytes: new Uint8Array(PAGE).fill(0xff) });
    }, "the file is damaged"],
  ];
  for (const isOld of [true, false]) {
    for (const [name, damage, words] of faults) {
      // A damaged index of a file that is up to date is found by the audit.
      if (!isOld && name.startsWith("an index")) continue;
      for (const journal of ["wal", "delete"]) {
        await inFolder(async (folder) => {
          const path = `${folder}/sluice.db`;
          await outdated(path);
          if (!isOld) {
            await openSqliteStore(path).close();
            await removeCopies(folder);
          }
          change(path, `PRAGMA journal_mode = ${journal}`);
          await damage(path);
          const before = await bytesOf(path);
          for (const own of isOld ? [true, false] : [true]) {
            const about = `${name}, ${isOld ? "older" : "current"}, ${journal}, ${own}`;
            assertThrows(() => openSqliteStore(path, { own }), StoreError, words, about);
            assertEquals(await bytesOf(path), before, about);
          }
          assertEquals((await namesIn(folder)).filter((each) => each.includes("shape")), []);
        });
      }
    }
  }
});

Deno.test("the log of a killed gateway is not merged into a file that fails its check", () =>
  inFolder(async (folder) => {
    const path = `${folder}/sluice.db`;
    await outdated(path);
    // An unmerged log: both files as they are while a connection is open.
    const open = new DatabaseSync(path);
    open.exec(
      "PRAGMA journal_mode = WAL; DROP TRIGGER entries_stay; UPDATE entries SET cost = cost + 1 WHERE seq = 40",
    );
    await Deno.mkdir(`${folder}/killed`);
    const killed = `${folder}/killed/sluice.db`;
    for (const end of ["", "-wal"]) await Deno.copyFile(path + end, killed + end);
    open.close();
    const before = await bytesOf(killed);
    assertEquals([...before.keys()], ["", "-wal"]);
    assertThrows(() => openSqliteStore(killed, { own: true }), StoreError, "entry 40");
    assertEquals(await bytesOf(killed), before);
  }));

Deno.test("a failing step rolls back all steps, and leaves no copy", () =>
  inFolder(async (folder) => {
    const path = `${folder}/sluice.db`;
    change(path, `${MIGRATIONS.slice(0, 3).join("")} PRAGMA user_version = 3; CREATE TABLE days (day INTEGER)`);
    const before = await bytesOf(path);
    for (const own of [true, false]) {
      assertThrows(() => openSqliteStore(path, { own }), StoreError, "table days already exists");
      assertEquals(await bytesOf(path), before);
    }
    assertEquals((await namesIn(folder)).filter((name) => name.includes("shape")), []);
  }));

Deno.test("a store opened for reading changes no byte, and requires a current schema", () =>
  inFolder(async (folder) => {
    const path = `${folder}/sluice.db`;
    await outdated(path);
    const reading = () => openStore({ kind: "sqlite", path }, { readOnly: true });
    for (const journal of ["wal", "delete"]) {
      change(path, `PRAGMA journal_mode = ${journal}`);
      const old = await bytesOf(path);
      const error = await assertRejects(reading, StoreError);
      assertStringIncludes(error.message, `it has an older schema (version ${OLDER}, this one needs`);
      assertEquals(await bytesOf(path), old);
    }
    await openSqliteStore(path).close();
    for (const journal of ["wal", "delete"]) {
      change(path, `PRAGMA journal_mode = ${journal}`);
      const current = await bytesOf(path);
      const store: Store = await reading();
      assertEquals(await store.keys.list(), [key()]);
      assertEquals((await store.ledger.entries({ after: 0, limit: 100 })).length, 50);
      assertEquals((await store.ledger.usage({ since: 0, until: Date.now(), by: "key" })).length, 1);
      await assertRejects(() => store.keys.add(key({ id: "key_2", name: "two" })), Error, "readonly");
      await store.close();
      assertEquals(await bytesOf(path), current);
    }
    const empty = `${folder}/empty.db`;
    await Deno.writeTextFile(empty, "");
    const error = await assertRejects(() => openStore({ kind: "sqlite", path: empty }, { readOnly: true }), StoreError);
    assertStringIncludes(error.message, "it has no tables yet");
    assertEquals((await Deno.stat(empty)).size, 0);
    const nowhere = `${folder}/none.db`;
    await assertRejects(() => openStore({ kind: "sqlite", path: nowhere }, { readOnly: true }), StoreError);
    assert(!(await namesIn(folder)).includes("none.db"));
  }));
