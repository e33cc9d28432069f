import { assert, assertEquals, assertThrows } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { MIGRATIONS } from "../../../lib/store/sqlite/migrations.ts";
import { openSqliteStore } from "../../../lib/store/sqlite/store.ts";
import { takeOwnership } from "../../../lib/store/sqlite/owner_lock.ts";
import { StoreError } from "../../../lib/store/store.ts";
import { entryOf } from "../../billing/entries.ts";
import { hash, key } from "../behaviours_keys.ts";
import { othersTurns } from "../../support/others_turns.ts";
import { inFolder } from "../in_folder.ts";

Deno.test("the SQLite store sees writes of another connection at once", () =>
  inFolder(async (folder) => {
    const [one, two] = [openSqliteStore(`${folder}/sluice.db`), openSqliteStore(`${folder}/sluice.db`)];
    assertEquals(await two.keys.findByHash(key().hash, 0), undefined);
    await one.keys.add(key());
    assertEquals(await two.keys.findByHash(key().hash, 0), key());
    await one.keys.revoke("key_1", 2000);
    assertEquals((await two.keys.findByHash(key().hash, 0))?.revokedAt, 2000);
    await one.close();
    await two.close();
  }));

Deno.test("the version of the keys changes with any change of a key, and not with ledger entries", () =>
  inFolder(async (folder) => {
    const path = `${folder}/sluice.db`;
    const [owner, guest] = [openSqliteStore(path, { own: true }), openSqliteStore(path)];
    const db = new DatabaseSync(path);
    const turn = () => new Promise((resolve) => setTimeout(resolve, 0));
    const versionOf = ({ keys }: typeof owner) => keys.version?.() ?? NaN;
    await owner.keys.add(key());
    const changes: [string, () => unknown][] = [
      ["its own", () => owner.keys.change("key_1", { disabled: true })],
      ["its own use", () => owner.keys.touch(new Map([["key_1", 60_000]]))],
      ["its own rotation", () => owner.keys.rotate("key_1", { hash: hash("b"), until: 5000 })],
      ["a new key", () => owner.keys.add(key({ id: "key_2", name: "two", hash: hash("c") }))],
      ["another store's", () => guest.keys.change("key_1", { disabled: false })],
      ["another program's", () => db.exec("UPDATE keys SET group_name = 'other' WHERE id = 'key_1'")],
      ["another store's end of it", () => guest.keys.revoke("key_1", 2000)],
    ];
    for (const [name, change] of changes) {
      await turn();
      const [before, there] = [versionOf(owner), versionOf(guest)];
      await change();
      await turn();
      assert(versionOf(owner) !== before && versionOf(guest) !== there, name);
    }
    await turn();
    const before = versionOf(owner);
    // The store's own changes give another version even within the same turn.
    await owner.keys.change("key_2", { disabled: true });
    assert(versionOf(owner) !== before);
    await turn();
    const calm = versionOf(owner);
    await owner.ledger.append([entryOf("r1")]);
    await turn();
    assertEquals(versionOf(owner), calm);
    db.close();
    await guest.close();
    await owner.close();
  }));

Deno.test("the SQLite store migrates a file of the first schema", () =>
  inFolder(async (folder) => {
    const path = `${folder}/sluice.db`;
    const db = new DatabaseSync(path);
    db.exec(MIGRATIONS[0] ?? "");
    db.exec("PRAGMA user_version = 1");
    db.exec("INSERT INTO keys VALUES ('key_1', 'ci', printf('%064d', 0), 'default', 1000, 0, NULL)");
    db.close();
    const store = openSqliteStore(`${path}`);
    assertEquals(await store.keys.list(), [key({ hash: "0".repeat(64) })]);
    assertEquals(await store.keys.rotate("key_1", { hash: hash("b"), until: 5000 }), true);
    await store.close();
  }));

Deno.test("the SQLite store adds no tables to a file of another program", () =>
  inFolder((folder) => {
    const path = `${folder}/books.db`;
    const db = new DatabaseSync(path);
    db.exec("CREATE TABLE books (title TEXT)");
    const why = "it is a database of another program, with tables of its own";
    for (const own of [true, false]) {
      assertThrows(() => openSqliteStore(path, { own }), StoreError, `Cannot open the store "${path}": ${why}`);
    }
    assertEquals(db.prepare("SELECT name FROM sqlite_schema").all().map(({ name }) => name), ["books"]);
    db.close();
    return Promise.resolve();
  }));

Deno.test("the SQLite store leaves an older file unchanged while a gateway serves from it", () =>
  inFolder(async (folder) => {
    const path = `${folder}/sluice.db`;
    const db = new DatabaseSync(path);
    const older = MIGRATIONS.length - 1;
    db.exec(MIGRATIONS.slice(0, older).join(""));
    db.exec(`PRAGMA user_version = ${older}`);
    const shape = () => Object.values(db.prepare("PRAGMA user_version").get() ?? {})[0];

    const gateway = takeOwnership(`${path}-owner`);
    const why = "it needs a migration, and another gateway is serving from it";
    assertThrows(() => openSqliteStore(path), StoreError, `Cannot open the store "${path}": ${why}`);
    assertEquals(shape(), older);
    db.exec("PRAGMA user_version = 99");
    assertThrows(() => openSqliteStore(path), StoreError, "newer version of Sluice");
    db.exec(`PRAGMA user_version = ${older}`);
    gateway.close();

    const guest = openSqliteStore(path);
    assertEquals(shape(), MIGRATIONS.length);
    // It was reserved only for the change.
    const owner = openSqliteStore(path, { own: true });
    await owner.close();
    await guest.close();
    db.close();
  }));

Deno.test("a new SQLite file can be used while the gateway that will serve from it starts", () =>
  inFolder(async (folder) => {
    const gateway = takeOwnership(`${folder}/sluice.db-owner`);
    const guest = openSqliteStore(`${folder}/sluice.db`);
    await guest.keys.add(key());
    await guest.close();
    gateway.close();
  }));

Deno.test("the SQLite store creates folder and file with owner-only permissions", async () => {
  await inFolder(async (folder) => {
    const store = openSqliteStore(`${folder}/deep/data/sluice.db`, { own: true });
    await store.keys.add(key());
    if (Deno.build.os !== "windows") {
      const mode = (path: string) => (Deno.statSync(`${folder}/${path}`).mode ?? 0) & 0o777;
      assertEquals([mode("deep"), mode("deep/data")], [0o700, 0o700]);
      for await (const { name } of Deno.readDir(`${folder}/deep/data`)) {
        assertEquals(mode(`deep/data/${name}`), 0o600, name);
      }
    }
    await store.close();
  });
});

Deno.test("the SQLite store uses a write-ahead log and syncs every commit", () =>
  inFolder(async (folder) => {
    await openSqliteStore(`${folder}/sluice.db`).close();
    const db = new DatabaseSync(`${folder}/sluice.db`);
    assertEquals(Object.values(db.prepare("PRAGMA journal_mode").get() ?? {}), ["wal"]);
    assertEquals(Object.values(db.prepare("PRAGMA user_version").get() ?? {}), [MIGRATIONS.length]);
    assertThrows(
      () => db.exec("INSERT INTO keys (id, name, hash, group_name, created_at) VALUES ('i', 'n', 'short', 'g', 1)"),
      Error,
      "CHECK",
    );
    assertThrows(
      () =>
        db.exec(
          "INSERT INTO keys (id, name, hash, group_name, created_at) VALUES ('i', 'n', hex(zeroblob(32)), 'g', 'x')",
        ),
      Error,
      "INTEGER",
    );
    db.close();
  }));

Deno.test("the SQLite store rejects files that are not databases, damaged or newer", () =>
  inFolder(async (folder) => {
    const path = `${folder}/sluice.db`;
    const refuse = (words: string) => assertThrows(() => openSqliteStore(`${path}`, { own: true }), StoreError, words);
    await Deno.writeTextFile(path, "this is no database at all, and long enough to be looked at".repeat(100));
    refuse(`Cannot open the store "${path}"`);
    await Deno.remove(path);

    const store = openSqliteStore(`${path}`);
    for (let index = 0; index < 200; index++) {
      await store.keys.add(key({ id: `k${index}`, name: `n${index}`, hash: String(index).padStart(64, "0") }));
    }
    await store.close();
    const good = await Deno.readFile(path);
    const bad = good.slice();
    bad.fill(0xff, 4096, 4096 * 3);
    await Deno.writeFile(path, bad);
    refuse("Cannot open the store");

    await Deno.writeFile(path, good);
    const db = new DatabaseSync(path);
    db.exec("PRAGMA user_version = 99");
    db.close();
    refuse("newer version of Sluice");
  }));

Deno.test("the SQLite store checks a large file partially, and not at all for commands", () =>
  inFolder(async (folder) => {
    const path = `${folder}/sluice.db`;
    const store = openSqliteStore(`${path}`);
    for (let index = 0; index < 200; index++) {
      await store.keys.add(key({ id: `k${index}`, name: `n${index}`, hash: String(index).padStart(64, "0") }));
    }
    await store.close();
    const db = new DatabaseSync(path);
    const pageOf = (table: string) =>
      Number(db.prepare("SELECT rootpage FROM sqlite_schema WHERE name = ?").get(table)?.rootpage);
    const [keys, answers] = [pageOf("keys"), pageOf("answers")];
    const damage = async (page: number) => {
      using file = await Deno.open(path, { write: true });
      await file.seek((page - 1) * 4096, Deno.SeekMode.Start);
      await file.write(new Uint8Array(4096).fill(0xff));
    };
    const own = () => openSqliteStore(`${path}`, { own: true });

    const insert = (key: string, bytes: number) =>
      `INSERT INTO answers VALUES ('s', '${key}', '${"a".repeat(64)}', 200, '{}', 0, ${bytes}, zeroblob(${bytes}))`;
    db.exec(insert("small", 10_000));
    db.close();
    const small = await Deno.readFile(path);
    await damage(answers);
    assertThrows(own, StoreError, "the file is damaged");

    await Deno.writeFile(path, small);
    const again = new DatabaseSync(path);
    again.exec(insert("large", 70_000_000));
    again.close();
    await damage(answers);
    await own().close();
    await damage(keys);
    assertThrows(own, StoreError, "Cannot open the store");
    await openSqliteStore(`${path}`).close();
  }));

Deno.test("sqlite::memory: is the name of a file", () =>
  inFolder(async (folder) => {
    await openSqliteStore(`${folder}/:memory:`).close();
    assert((await Deno.stat(`${folder}/:memory:`)).isFile);
  }));

Deno.test("writes of a gateway wait in the background while another process has the lock", () =>
  inFolder(async (folder) => {
    const store = openSqliteStore(`${folder}/sluice.db`, { own: true });
    await store.keys.add(key());
    const claim = { scope: "s", key: "k", requestHash: "0".repeat(64), holder: "h" };
    await store.answers.claim(claim, 60_000);
    const other = new DatabaseSync(`${folder}/sluice.db`);
    other.exec("BEGIN IMMEDIATE");
    const origin = { author: "command_line", at: 5 } as const;
    const { holder, ...request } = claim;
    const writing = Promise.all([
      store.keys.touch(new Map([["key_1", 9000]])),
      store.keys.revoke("key_1", 9000, origin),
      store.answers.put({ ...request, status: 200, headers: {}, doneAt: 5 }, { maxBytes: 1, holder }),
      store.operators.endSession({ id: "session", expiresAt: 9000 }, 5),
      store.alerts.prune({ until: 0, now: 0 }),
    ]);
    // Calls of this process meet the lock before it ends.
    await othersTurns();
    assertEquals((await store.keys.find("key_1"))?.revokedAt, undefined);
    other.exec("ROLLBACK");
    assertEquals((await writing)[1], true);
    assertEquals((await store.keys.find("key_1"))?.lastUsedAt, 9000);
    assertEquals((await store.answers.find("s", "k"))?.doneAt, 5);
    assertEquals(await store.operators.endedSessions(5), [{ id: "session", expiresAt: 9000 }]);
    other.close();
    await store.close();
  }));
