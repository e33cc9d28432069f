import { assert, assertEquals } from "@std/assert";
import type { AnswerBounds, AnswerRecord, AnswerStore } from "../../lib/store/answers.ts";
import { openStore } from "../../lib/store/open.ts";
import { inFolder } from "./in_folder.ts";

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

/** What every store promises of answers. */
const BEHAVIOURS: Record<string, (answers: AnswerStore) => void> = {
  "keeps an answer piece by piece, unseen until it is sealed": (answers) => {
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
  "shows the newest answer of a scope and key": (answers) => {
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
  "forgets answers by age, and the first of too many": (answers) => {
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
  "drops bodies, the first first, and still knows their answers": (answers) => {
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
  "gives an id once only": (answers) => {
    const ids = [1, 2, 3].map(() => {
      const id = add(answers, {});
      settle(answers, { until: 5000 });
      return id;
    });
    assertEquals(new Set(ids).size, 3);
  },
  "hands out copies of answers": (answers) => {
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
};

for (const [name, behaviour] of Object.entries(BEHAVIOURS)) {
  Deno.test(`the memory store ${name}`, async () => {
    const store = openStore("memory:");
    behaviour(store.answers);
    await store.close();
  });
  Deno.test(`the SQLite store ${name}`, () =>
    inFolder(async (folder) => {
      const store = openStore(`sqlite:${folder}/sluice.db`);
      behaviour(store.answers);
      await store.close();
    }));
}

Deno.test("the SQLite store keeps answers between starts", () =>
  inFolder(async (folder) => {
    const first = openStore(`sqlite:${folder}/sluice.db`);
    const id = first.answers.begin(answer());
    first.answers.write(id, 0, Uint8Array.of(1, 2, 3));
    first.answers.seal(id);
    const unseen = first.answers.begin(answer({ key: "unseen" }));
    await first.close();
    const second = openStore(`sqlite:${folder}/sluice.db`);
    assertEquals(second.answers.find("s", "k"), { ...answer(), id });
    assertEquals(second.answers.read(id, 0), Uint8Array.of(1, 2, 3));
    assertEquals(second.answers.find("s", "unseen"), undefined);
    assert(second.answers.begin(answer()) > unseen);
    await second.close();
  }));

Deno.test("the SQLite store prunes a little at a time", () =>
  inFolder(async (folder) => {
    const store = openStore(`sqlite:${folder}/sluice.db`);
    const id = store.answers.begin(answer({ bytes: 40 }));
    for (let part = 0; part < 40; part++) store.answers.write(id, part, Uint8Array.of(part));
    store.answers.seal(id);
    let calls = 0;
    while (store.answers.prune({ until: 1000, maxBytes: 100, maxAnswers: 100 })) calls++;
    assertEquals(calls, 2);
    assertEquals(store.answers.read(id, 39), undefined);
    await store.close();
  }));
