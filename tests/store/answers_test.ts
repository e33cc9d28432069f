import { assert, assertEquals, assertRejects } from "@std/assert";
import { openSqliteStore } from "../../lib/store/sqlite/store.ts";
import { answer, ROOM, testAnswers } from "./behaviours_answers.ts";
import { inFolder } from "./in_folder.ts";

testAnswers("the SQLite store", (test) =>
  inFolder(async (folder) => {
    const store = openSqliteStore(`${folder}/sluice.db`);
    await test(store.answers);
    await store.close();
  }));

Deno.test("the SQLite store keeps answers between starts", () =>
  inFolder(async (folder) => {
    const first = openSqliteStore(`${folder}/sluice.db`);
    const { id } = await first.answers.begin(answer(), ROOM);
    await first.answers.write(id, 0, Uint8Array.of(1, 2, 3));
    await first.answers.seal(id);
    const unseen = await first.answers.begin(answer({ key: "unseen" }), ROOM);
    await first.close();
    const second = openSqliteStore(`${folder}/sluice.db`);
    assertEquals(await second.answers.find("s", "k"), { ...answer(), id });
    assertEquals(await second.answers.read(id, 0), Uint8Array.of(1, 2, 3));
    assertEquals(await second.answers.find("s", "unseen"), undefined);
    assert((await second.answers.begin(answer(), ROOM)).id > unseen.id);
    await second.close();
  }));

Deno.test("the SQLite store prunes a little at a time", () =>
  inFolder(async (folder) => {
    const store = openSqliteStore(`${folder}/sluice.db`);
    const { id } = await store.answers.begin(answer({ bytes: 40 }), ROOM);
    for (let part = 0; part < 40; part++) await store.answers.write(id, part, Uint8Array.of(part));
    await store.answers.seal(id);
    let calls = 0;
    while (await store.answers.prune({ until: 1000, maxBytes: 100, maxAnswers: 100 })) calls++;
    assertEquals(calls, 2);
    assertEquals(await store.answers.read(id, 39), undefined);
    await store.close();
  }));

Deno.test("what the SQLite store cannot do with answers rejects", () =>
  inFolder(async (folder) => {
    const store = openSqliteStore(`${folder}/sluice.db`);
    await store.close();
    const { answers } = store;
    const calls: (() => Promise<unknown>)[] = [
      () => answers.find("s", "k"),
      () => answers.begin(answer(), ROOM),
      () => answers.write(1, 0, Uint8Array.of(1)),
      () => answers.seal(1),
      () => answers.read(1, 0),
      () => answers.keptBytes(),
      () => answers.prune({ until: 0, maxBytes: 0, maxAnswers: 0 }),
    ];
    for (const call of calls) await assertRejects(call);
  }));
