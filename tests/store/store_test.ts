import { assert, assertEquals, assertThrows } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import type { AnswerBounds, AnswerRecord, AnswerStore } from "../../lib/store/answers.ts";
import { MIGRATIONS } from "../../lib/store/migrations.ts";
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

function answer(change: Partial<AnswerRecord> = {}): AnswerRecord {
  return {
    scope: "s",
    key: "k",
    requestHash: "a".repeat(64),
    status: 200,
    headers: { "content-type": "application/json" },
    bytes: 10,
    kept: true,
    doneAt: 1000,
    ...change,
  };
}

/** A whole answer with one piece. Returns its id. */
function add(answers: AnswerStore, change: Partial<AnswerRecord>): number {
  const id = answers.begin(answer(change));
  answers.write(id, 0, Uint8Array.of(1));
  answers.seal(id);
  return id;
}

/** Prunes until there is nothing left to do. */
function settle(answers: AnswerStore, bounds: Partial<AnswerBounds>): void {
  let calls = 0;
  while (answers.prune({ until: 0, maxBytes: 1e9, maxAnswers: 1e9, ...bounds })) assert(calls++ < 1000);
}

/** Whether the bodies of answers k1 to k4 are kept; `undefined` for an answer that is not known. */
function keys(answers: AnswerStore): (boolean | undefined)[] {
  return [1, 2, 3, 4].map((number) => answers.find("s", `k${number}`)?.kept);
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
  "keeps an answer piece by piece, unseen until it is sealed": ({ answers }) => {
    const id = answers.begin(answer());
    answers.write(id, 0, Uint8Array.of(1, 2));
    assertEquals(answers.find("s", "k"), undefined);
    assertEquals(answers.keptBytes(), 10);
    answers.write(id, 1, Uint8Array.of(3));
    answers.seal(id);
    assertEquals(answers.find("s", "k"), { ...answer(), id });
    assertEquals([0, 1, 2].map((part) => answers.read(id, part)), [Uint8Array.of(1, 2), Uint8Array.of(3), undefined]);
    assertEquals([answers.find("s", "K"), answers.find("S", "k")], [undefined, undefined]);
  },
  "shows the newest answer of a scope and key": ({ answers }) => {
    const [one, two] = [answers.begin(answer()), answers.begin(answer({ status: 400, requestHash: "b".repeat(64) }))];
    answers.write(one, 0, Uint8Array.of(1));
    answers.write(two, 0, Uint8Array.of(2));
    answers.seal(one);
    answers.seal(two);
    assertEquals(answers.find("s", "k"), { ...answer({ status: 400, requestHash: "b".repeat(64) }), id: two });
    settle(answers, {});
    assertEquals([answers.read(one, 0), answers.read(two, 0)], [undefined, Uint8Array.of(2)]);
    assertEquals(answers.keptBytes(), 10);
  },
  "forgets answers by age, and the first of too many": ({ answers }) => {
    const ids = [1, 2, 3, 4].map((time) => add(answers, { key: `k${time}`, doneAt: time }));
    settle(answers, { until: 1 });
    assertEquals(keys(answers), [undefined, true, true, true]);
    settle(answers, { maxAnswers: 2 });
    assertEquals(keys(answers), [undefined, undefined, true, true]);
    assertEquals(ids.map((id) => answers.read(id, 0) !== undefined), [false, false, true, true]);
    const unseen = answers.begin(answer({ doneAt: 1 }));
    answers.write(unseen, 0, Uint8Array.of(1));
    settle(answers, { until: 1 });
    answers.seal(unseen);
    settle(answers, {});
    assertEquals([answers.find("s", "k"), answers.read(unseen, 0)], [undefined, undefined]);
  },
  "drops bodies, the first first, and still knows their answers": ({ answers }) => {
    const ids = [1, 2, 3, 4].map((time) => add(answers, { key: `k${time}`, doneAt: time }));
    assertEquals(answers.keptBytes(), 40);
    settle(answers, { maxBytes: 25 });
    assertEquals(keys(answers), [false, false, true, true]);
    assertEquals([answers.keptBytes(), ...ids.map((id) => answers.read(id, 0)?.length)], [
      20,
      undefined,
      undefined,
      1,
      1,
    ]);
    settle(answers, { maxBytes: 0 });
    assertEquals([keys(answers), answers.keptBytes()], [[false, false, false, false], 0]);
  },
  "gives an id once only": ({ answers }) => {
    const ids = [1, 2, 3].map(() => {
      const id = add(answers, {});
      settle(answers, { until: 5000 });
      return id;
    });
    assertEquals(new Set(ids).size, 3);
  },
  "hands out copies of answers": ({ answers }) => {
    const piece = Uint8Array.of(1);
    const record = answer();
    const id = answers.begin(record);
    answers.write(id, 0, piece);
    answers.seal(id);
    piece[0] = 9;
    record.status = 500;
    answers.read(id, 0)?.fill(9);
    assertEquals([answers.read(id, 0), answers.find("s", "k")?.status], [Uint8Array.of(1), 200]);
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

Deno.test("the SQLite store keeps answers between starts", () =>
  inFolder((folder) => {
    const first = openStore(`sqlite:${folder}/sluice.db`);
    const id = first.answers.begin(answer());
    first.answers.write(id, 0, Uint8Array.of(1, 2, 3));
    first.answers.seal(id);
    const unseen = first.answers.begin(answer({ key: "unseen" }));
    first.close();
    const second = openStore(`sqlite:${folder}/sluice.db`);
    assertEquals(second.answers.find("s", "k"), { ...answer(), id });
    assertEquals(second.answers.read(id, 0), Uint8Array.of(1, 2, 3));
    assertEquals(second.answers.find("s", "unseen"), undefined);
    assert(second.answers.begin(answer()) > unseen);
    second.close();
  }));

Deno.test("the SQLite store prunes a little at a time", () =>
  inFolder((folder) => {
    const store = openStore(`sqlite:${folder}/sluice.db`);
    const id = store.answers.begin(answer({ bytes: 40 }));
    for (let part = 0; part < 40; part++) store.answers.write(id, part, Uint8Array.of(part));
    store.answers.seal(id);
    let calls = 0;
    while (store.answers.prune({ until: 1000, maxBytes: 100, maxAnswers: 100 })) calls++;
    assertEquals(calls, 2);
    assertEquals(store.answers.read(id, 39), undefined);
    store.close();
  }));

Deno.test("the SQLite store brings a file of the first shape up to date", () =>
  inFolder((folder) => {
    const path = `${folder}/sluice.db`;
    const db = new DatabaseSync(path);
    db.exec(MIGRATIONS[0] ?? "");
    db.exec("PRAGMA user_version = 1");
    db.exec("INSERT INTO keys VALUES ('key_1', 'ci', printf('%064d', 0), 'default', 1000, 0, NULL)");
    db.close();
    const store = openStore(`sqlite:${path}`);
    assertEquals(store.listKeys(), [key({ hash: "0".repeat(64) })]);
    assertEquals(add(store.answers, {}), 1);
    store.close();
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
    assertEquals(Object.values(db.prepare("PRAGMA user_version").get() ?? {}), [MIGRATIONS.length]);
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
