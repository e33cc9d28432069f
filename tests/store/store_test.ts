import { assert, assertEquals, assertThrows } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { openStore } from "../../lib/store/open.ts";
import { type KeyRecord, type Store, StoreError } from "../../lib/store/store.ts";

/** Runs a test with a fresh folder that is removed afterwards. */
async function inFolder(test: (folder: string) => void | Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await test(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

function key(change: Partial<KeyRecord> = {}): KeyRecord {
  return {
    id: "key_1",
    name: "ci",
    hash: "a".repeat(64),
    group: "default",
    createdAt: 1000,
    disabled: false,
    ...change,
  };
}

/** What every store promises. */
const BEHAVIOURS: Record<string, (store: Store) => void> = {
  "keeps a key and finds it by its hash": (store) => {
    assertEquals(store.addKey(key()), true);
    assertEquals(store.findKeyByHash("a".repeat(64)), key());
    assertEquals(store.findKeyByHash("b".repeat(64)), undefined);
    assertEquals(store.findKeyByHash("' OR 1=1 --"), undefined);
  },
  "refuses a name in use, and an id or hash that was ever used": (store) => {
    store.addKey(key());
    const other = key({ id: "key_2", name: "two", hash: "b".repeat(64) });
    assertEquals(store.addKey({ ...other, name: "ci" }), false);
    assertEquals(store.addKey({ ...other, id: "key_1" }), false);
    assertEquals(store.addKey({ ...other, hash: key().hash }), false);
    assertEquals(store.listKeys(), [key()]);
    assertEquals(store.addKey(other), true);
  },
  "lists keys in the order they were added": (store) => {
    const keys = ["c", "a", "b"].map((letter) => key({ id: letter, name: letter, hash: letter.repeat(64) }));
    for (const each of keys) store.addKey(each);
    assertEquals(store.listKeys(), keys);
  },
  "disables and enables a key": (store) => {
    store.addKey(key());
    assertEquals(store.setDisabled("key_1", true), true);
    assertEquals(store.findKeyByHash(key().hash)?.disabled, true);
    assertEquals(store.setDisabled("key_1", false), true);
    assertEquals(store.findKeyByHash(key().hash)?.disabled, false);
    assertEquals(store.setDisabled("key_9", true), false);
  },
  "keeps a revoked key, which cannot come back": (store) => {
    store.addKey(key());
    assertEquals(store.revokeKey("key_1", 2000), true);
    assertEquals(store.revokeKey("key_1", 3000), false);
    assertEquals(store.setDisabled("key_1", false), false);
    assertEquals(store.listKeys(), [key({ revokedAt: 2000 })]);
    assertEquals(store.findKeyByHash(key().hash), key({ revokedAt: 2000 }));
  },
  "frees the name of a revoked key": (store) => {
    store.addKey(key());
    store.revokeKey("key_1", 2000);
    assertEquals(store.addKey(key({ id: "key_2", hash: "b".repeat(64) })), true);
  },
  "hands out copies": (store) => {
    store.addKey(key());
    for (const found of store.listKeys()) found.disabled = true;
    assertEquals(store.listKeys(), [key()]);
  },
};

for (const [name, behaviour] of Object.entries(BEHAVIOURS)) {
  Deno.test(`the memory store ${name}`, () => {
    const store = openStore("memory:");
    behaviour(store);
    store.close();
  });
  Deno.test(`the SQLite store ${name}`, () =>
    inFolder((folder) => {
      const store = openStore(`sqlite:${folder}/sluice.db`);
      behaviour(store);
      store.close();
    }));
}

Deno.test("the SQLite store keeps keys between starts", () =>
  inFolder((folder) => {
    const first = openStore(`sqlite:${folder}/sluice.db`);
    first.addKey(key({ disabled: true }));
    first.close();
    const second = openStore(`sqlite:${folder}/sluice.db`);
    assertEquals(second.listKeys(), [key({ disabled: true })]);
    second.close();
  }));

Deno.test("the SQLite store sees at once what another one of the same file wrote", () =>
  inFolder((folder) => {
    const [one, two] = [openStore(`sqlite:${folder}/sluice.db`), openStore(`sqlite:${folder}/sluice.db`)];
    assertEquals(two.findKeyByHash(key().hash), undefined);
    one.addKey(key());
    assertEquals(two.findKeyByHash(key().hash), key());
    one.revokeKey("key_1", 2000);
    assertEquals(two.findKeyByHash(key().hash)?.revokedAt, 2000);
    one.close();
    two.close();
  }));

Deno.test("the SQLite store makes its folder and file for the owner only", async () => {
  await inFolder((folder) => {
    const store = openStore(`sqlite:${folder}/deep/data/sluice.db`);
    store.addKey(key());
    if (Deno.build.os !== "windows") {
      const mode = (path: string) => (Deno.statSync(`${folder}/${path}`).mode ?? 0) & 0o777;
      assertEquals([mode("deep"), mode("deep/data")], [0o700, 0o700]);
      for (const { name } of Deno.readDirSync(`${folder}/deep/data`)) {
        assertEquals(mode(`deep/data/${name}`), 0o600, name);
      }
    }
    store.close();
  });
});

Deno.test("the SQLite store writes through a log, with every commit on the disk", () =>
  inFolder((folder) => {
    openStore(`sqlite:${folder}/sluice.db`).close();
    const db = new DatabaseSync(`${folder}/sluice.db`);
    assertEquals(Object.values(db.prepare("PRAGMA journal_mode").get() ?? {}), ["wal"]);
    assertEquals(Object.values(db.prepare("PRAGMA user_version").get() ?? {}), [1]);
    assertThrows(() => db.exec("INSERT INTO keys VALUES ('i', 'n', 'short', 'g', 1, 0, NULL)"), Error, "CHECK");
    assertThrows(
      () => db.exec("INSERT INTO keys VALUES ('i', 'n', hex(zeroblob(32)), 'g', 'x', 0, NULL)"),
      Error,
      "INTEGER",
    );
    db.close();
  }));

Deno.test("the SQLite store refuses a file that is no database, is damaged or newer", () =>
  inFolder((folder) => {
    const path = `${folder}/sluice.db`;
    const refuse = (words: string) => assertThrows(() => openStore(`sqlite:${path}`), StoreError, words);
    Deno.writeTextFileSync(path, "this is no database at all, and long enough to be looked at".repeat(100));
    refuse(`Cannot open the store "${path}"`);
    Deno.removeSync(path);

    const store = openStore(`sqlite:${path}`);
    for (let index = 0; index < 200; index++) {
      store.addKey(key({ id: `k${index}`, name: `n${index}`, hash: String(index).padStart(64, "0") }));
    }
    store.close();
    const good = Deno.readFileSync(path);
    const bad = good.slice();
    bad.fill(0xff, 4096, 4096 * 3);
    Deno.writeFileSync(path, bad);
    refuse("Cannot open the store");

    Deno.writeFileSync(path, good);
    const db = new DatabaseSync(path);
    db.exec("PRAGMA user_version = 99");
    db.close();
    refuse("newer version of Sluice");
  }));

Deno.test("openStore() takes :memory: after sqlite: as the name of a file", () =>
  inFolder((folder) => {
    openStore(`sqlite:${folder}/:memory:`).close();
    assert(Deno.statSync(`${folder}/:memory:`).isFile);
  }));
