/** What every store promises of answers. */
import { assert, assertEquals } from "@std/assert";
import type { AnswerBounds, AnswerClaim, AnswerRecord, AnswerStore } from "../../lib/store/answers.ts";

/** More than any test keeps. */
export const ROOM = { maxBytes: 1e9 };

/** An answer as it is kept. */
export function answer(change: Partial<AnswerRecord> = {}): AnswerRecord {
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

/** A request that somebody does. */
function claim(change: Partial<AnswerClaim> = {}): AnswerClaim {
  return { scope: "s", key: "k", requestHash: "a".repeat(64), holder: "one", ...change };
}

/** Longer than any test takes, in milliseconds. */
const LONG_MS = 60_000;

async function begin(answers: AnswerStore, change: Partial<AnswerRecord> = {}): Promise<number> {
  return (await answers.begin(answer(change), ROOM)).id;
}

/** A whole answer with one piece. Returns its id. */
async function add(answers: AnswerStore, change: Partial<AnswerRecord>): Promise<number> {
  const id = await begin(answers, change);
  await answers.write(id, 0, Uint8Array.of(1));
  await answers.seal(id);
  return id;
}

/** Four answers with the keys k1 to k4, done at 1 to 4. Returns their ids. */
async function addFour(answers: AnswerStore): Promise<number[]> {
  const ids = [];
  for (const time of [1, 2, 3, 4]) ids.push(await add(answers, { key: `k${time}`, doneAt: time }));
  return ids;
}

/** Prunes until there is nothing left to do. */
async function settle(answers: AnswerStore, bounds: Partial<AnswerBounds>): Promise<void> {
  let calls = 0;
  while (await answers.prune({ until: 0, maxBytes: 1e9, maxAnswers: 1e9, ...bounds })) assert(calls++ < 1000);
}

/** Whether the bodies of answers k1 to k4 are kept; `undefined` for an answer that is not known. */
async function keys(answers: AnswerStore): Promise<(boolean | undefined)[]> {
  return (await Promise.all([1, 2, 3, 4].map((number) => answers.find("s", `k${number}`)))).map((found) => found?.kept);
}

function pieces(answers: AnswerStore, ids: number[]): Promise<(Uint8Array | undefined)[]> {
  return Promise.all(ids.map((id) => answers.read(id, 0)));
}

const BEHAVIOURS: Record<string, (answers: AnswerStore) => Promise<void>> = {
  "keeps an answer piece by piece, unseen until it is sealed": async (answers) => {
    const id = await begin(answers);
    await answers.write(id, 0, Uint8Array.of(1, 2));
    assertEquals(await answers.find("s", "k"), undefined);
    assertEquals(await answers.keptBytes(), 10);
    await answers.write(id, 1, Uint8Array.of(3));
    await answers.seal(id);
    assertEquals(await answers.find("s", "k"), { ...answer(), id });
    const read = await Promise.all([0, 1, 2].map((part) => answers.read(id, part)));
    assertEquals(read, [Uint8Array.of(1, 2), Uint8Array.of(3), undefined]);
    assertEquals([await answers.find("s", "K"), await answers.find("S", "k")], [undefined, undefined]);
  },
  "shows the newest answer of a scope and key": async (answers) => {
    const other = { status: 400, requestHash: "b".repeat(64) };
    const [one, two] = [await begin(answers), await begin(answers, other)];
    await answers.write(one, 0, Uint8Array.of(1));
    await answers.write(two, 0, Uint8Array.of(2));
    await answers.seal(one);
    await answers.seal(two);
    assertEquals(await answers.find("s", "k"), { ...answer(other), id: two });
    await settle(answers, {});
    assertEquals(await pieces(answers, [one, two]), [undefined, Uint8Array.of(2)]);
    assertEquals(await answers.keptBytes(), 10);
  },
  "keeps a body only where it fits beside all others, of those that come at once too": async (answers) => {
    const wish = (key: string, change: Partial<AnswerRecord> = {}) =>
      answers.begin(answer({ key, ...change }), { maxBytes: 25 });
    const begun = await Promise.all([wish("k1"), wish("k2", { kept: false }), wish("k3"), wish("k4"), wish("k5")]);
    assertEquals(begun.map(({ kept }) => kept), [true, false, true, false, false]);
    assertEquals(await answers.keptBytes(), 20);
    for (const { id } of begun) await answers.seal(id);
    assertEquals(await keys(answers), [true, false, true, false]);
    assertEquals((await wish("k6", { bytes: 5 })).kept, true);
    assertEquals((await wish("k7", { bytes: 1 })).kept, false);
  },
  "forgets answers by age, and the first of too many": async (answers) => {
    const ids = await addFour(answers);
    await settle(answers, { until: 1 });
    assertEquals(await keys(answers), [undefined, true, true, true]);
    await settle(answers, { maxAnswers: 2 });
    assertEquals(await keys(answers), [undefined, undefined, true, true]);
    assertEquals((await pieces(answers, ids)).map((piece) => piece !== undefined), [false, false, true, true]);
    const unseen = await begin(answers, { doneAt: 1 });
    await answers.write(unseen, 0, Uint8Array.of(1));
    await settle(answers, { until: 1 });
    await answers.seal(unseen);
    await settle(answers, {});
    assertEquals([await answers.find("s", "k"), await answers.read(unseen, 0)], [undefined, undefined]);
  },
  "drops bodies, the first first, and still knows their answers": async (answers) => {
    const ids = await addFour(answers);
    assertEquals(await answers.keptBytes(), 40);
    await settle(answers, { maxBytes: 25 });
    assertEquals(await keys(answers), [false, false, true, true]);
    assertEquals(await answers.keptBytes(), 20);
    assertEquals((await pieces(answers, ids)).map((piece) => piece?.length), [undefined, undefined, 1, 1]);
    await settle(answers, { maxBytes: 0 });
    assertEquals([await keys(answers), await answers.keptBytes()], [[false, false, false, false], 0]);
  },
  "gives an id once only": async (answers) => {
    const ids = new Set<number>();
    for (let round = 0; round < 3; round++) {
      ids.add(await add(answers, {}));
      await settle(answers, { until: 5000 });
    }
    assertEquals(ids.size, 3);
  },
  "lets one do a request at a time, and tells the others which request it is": async (answers) => {
    const other = claim({ requestHash: "b".repeat(64), holder: "two" });
    assertEquals(await answers.isClaimed("s", "k"), false);
    assertEquals(await answers.claim(claim(), LONG_MS), undefined);
    const first = { requestHash: "a".repeat(64), holder: "one", isOver: false };
    assertEquals(await answers.claim(other, LONG_MS), first);
    assertEquals(await answers.claim(other, LONG_MS, "one"), first);
    assertEquals(await answers.claim(claim(), LONG_MS), undefined);
    assertEquals(await answers.isClaimed("s", "k"), true);
    for (const away of [{ key: "K" }, { scope: "S" }]) {
      assertEquals(await answers.claim({ ...other, ...away }, LONG_MS), undefined);
    }
    await answers.release(other);
    assertEquals(await answers.claim(other, LONG_MS), first);
    await answers.release(claim());
    await answers.release(claim());
    assertEquals(await answers.isClaimed("s", "k"), false);
    assertEquals(await answers.claim(other, LONG_MS), undefined);
    assertEquals(await answers.claim(claim(), LONG_MS), { requestHash: "b".repeat(64), holder: "two", isOver: false });
  },
  "gives a request whose time is over to who names the one of before, and nothing back to that one": async (
    answers,
  ) => {
    await answers.claim(claim(), 40);
    await answers.claim(claim({ key: "renewed" }), 1);
    await answers.claim(claim({ key: "renewed" }), LONG_MS);
    const next = claim({ holder: "two" });
    const begun = performance.now();
    while (await answers.isClaimed("s", "k")) assert(performance.now() - begun < 5_000);
    // The store's clock may be finer than ours.
    assert(performance.now() - begun >= 20);
    const over = { requestHash: next.requestHash, holder: "one", isOver: true };
    for (const after of [undefined, "two", "nobody"]) assertEquals(await answers.claim(next, LONG_MS, after), over);
    await settle(answers, {});
    assertEquals(await answers.claim(next, LONG_MS, "one"), undefined);
    const other = { requestHash: next.requestHash, holder: "two", isOver: false };
    for (const after of [undefined, "one", "two"]) assertEquals(await answers.claim(claim(), LONG_MS, after), other);
    assertEquals((await answers.claim({ ...next, key: "renewed" }, LONG_MS, "one"))?.isOver, false);
    await answers.release(claim());
    assertEquals(await answers.isClaimed("s", "k"), true);
    await settle(answers, {});
    assertEquals(await answers.isClaimed("s", "k"), true);
    await answers.claim(claim({ key: "own" }), 1);
    while (await answers.isClaimed("s", "own"));
    assertEquals(await answers.claim(claim({ key: "own" }), LONG_MS), undefined);
  },
  "hands out copies of answers": async (answers) => {
    const piece = Uint8Array.of(1);
    const record = answer();
    const { id } = await answers.begin(record, ROOM);
    await answers.write(id, 0, piece);
    await answers.seal(id);
    piece[0] = 9;
    record.status = 500;
    (await answers.read(id, 0))?.fill(9);
    assertEquals([await answers.read(id, 0), (await answers.find("s", "k"))?.status], [Uint8Array.of(1), 200]);
  },
};

/** Tests a kind of store. `open` hands an empty one to the test and takes it away afterwards. */
export function testAnswers(
  name: string,
  open: (test: (answers: AnswerStore) => Promise<void>) => Promise<void>,
  options: Pick<Deno.TestDefinition, "ignore"> = {},
): void {
  for (const [claim, behaviour] of Object.entries(BEHAVIOURS)) {
    Deno.test({ name: `${name} ${claim}`, ...options, fn: () => open(behaviour) });
  }
}
