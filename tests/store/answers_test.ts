import { assertEquals, assertRejects } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { MIGRATIONS } from "../../lib/store/sqlite/migrations.ts";
import { openSqliteStore } from "../../lib/store/sqlite/store.ts";
import { answer, claim, ROOM, store as storeAnswer, testAnswers } from "./behaviours_answers.ts";
import { inFolder } from "./in_folder.ts";

testAnswers("the SQLite store", (test) =>
  inFolder(async (folder) => {
    const store = openSqliteStore(`${folder}/sluice.db`);
    await test(store.answers);
    await store.close();
  }));

Deno.test("the SQLite store keeps answers between starts, and the claims of a process that has ended", () =>
  inFolder(async (folder) => {
    const first = openSqliteStore(`${folder}/sluice.db`, { own: true });
    await storeAnswer(first.answers, answer());
    await first.answers.claim(claim({ key: "running" }), 600_000);
    await first.close();
    const second = openSqliteStore(`${folder}/sluice.db`, { own: true });
    assertEquals(await second.answers.find("s", "k"), answer());
    const next = claim({ key: "running", holder: "two" });
    await second.answers.prune({ ...ROOM, until: Date.now() - 60_000, maxAnswers: 10 });
    const over = { requestHash: next.requestHash, holder: "one", isOver: true };
    assertEquals(await second.answers.claim(next, 600_000), over);
    assertEquals(await second.answers.claim(next, 600_000, "one"), undefined);
    await second.close();
  }));

Deno.test("the SQLite store deletes answers in pieces of an older file, and stores new ones", () =>
  inFolder(async (folder) => {
    const path = `${folder}/sluice.db`;
    const db = new DatabaseSync(path);
    const older = 6;
    db.exec(
      `${MIGRATIONS.slice(0, older).join("")} PRAGMA user_version = ${older};
       CREATE TABLE answers (id INTEGER PRIMARY KEY AUTOINCREMENT, scope TEXT, key TEXT, headers TEXT);
       CREATE TABLE answer_pieces (answer INTEGER, part INTEGER, bytes BLOB);
       INSERT INTO answers VALUES (1, 's', 'k', '{}');
       INSERT INTO answer_pieces VALUES (1, 0, x'00')`,
    );
    db.close();
    const store = openSqliteStore(path);
    assertEquals(await store.answers.find("s", "k"), undefined);
    await storeAnswer(store.answers, answer());
    assertEquals(await store.answers.find("s", "k"), answer());
    await store.close();
  }));

Deno.test("the SQLite store rejects invalid answers", () =>
  inFolder(async (folder) => {
    const { answers, close } = openSqliteStore(`${folder}/sluice.db`);
    await close();
    const calls: (() => Promise<unknown>)[] = [
      () => answers.find("s", "k"),
      () => answers.put(answer(), { ...ROOM, holder: "one" }),
      () => answers.prune({ until: 0, maxBytes: 0, maxAnswers: 0 }),
    ];
    for (const call of calls) await assertRejects(call);
  }));
