/** Behaviour of every store for answers. */
import { assert, assertEquals, assertRejects } from "@std/assert";
import type { AnswerBounds, AnswerClaim, AnswerRecord, AnswerStore } from "../../lib/store/answers.ts";
import { until } from "../support/soon.ts";

/** More than any test stores. */
export const ROOM = { maxBytes: 1e9 };

/** An answer with a body of ten bytes. */
export function answer(change: Partial<AnswerRecord> = {}): AnswerRecord {
  return {
    scope: "s",
    key: "k",
    requestHash: "a".repeat(64),
    status: 200,
    headers: { "content-type": "application/json" },
    body: new Uint8Array(10),
    doneAt: 1000,
    ...change,
  };
}

/** The same without a body. */
export function bare(change: Partial<AnswerRecord> = {}): AnswerRecord {
  const { body: _, ...record } = answer(change);
  return record;
}

/** The claim of a request in progress. */
export function claim(change: Partial<AnswerClaim> = {}): AnswerClaim {
  return { scope: "s", key: "k", requestHash: "a".repeat(64), holder: "one", ...change };
}

/** Longer than any test takes, in milliseconds. */
const LONG_MS = 60_000;

/** Claims a request and stores its answer. */
export async function store(answers: AnswerStore, record: AnswerRecord, { maxBytes } = ROOM): Promise<void> {
  const { holder } = claim();
  await answers.claim({ ...record, holder }, LONG_MS);
  await answers.put(record, { holder, maxBytes });
}

/** Stores four answers with the keys k1 to k4, done at 1 to 4. */
async function addFour(answers: AnswerStore): Promise<void> {
  for (const time of [1, 2, 3, 4]) await store(answers, answer({ key: `k${time}`, doneAt: time }));
}

/** Prunes until nothing is left to prune. */
async function settle(answers: AnswerStore, bounds: Partial<AnswerBounds>): Promise<void> {
  let calls = 0;
  while (await answers.prune({ until: 0, maxBytes: 1e9, maxAnswers: 1e9, ...bounds })) assert(calls++ < 1000);
}

/** Body lengths of answers k1 to k4: `null` without a body, `undefined` without an answer. */
function lengths(answers: AnswerStore): Promise<(number | null | undefined)[]> {
  return Promise.all([1, 2, 3, 4].map(async (number) => {
    const found = await answers.find("s", `k${number}`);
    return found === undefined ? undefined : found.body?.length ?? null;
  }));
}

const BEHAVIOURS: Record<string, (answers: AnswerStore) => Promise<void>> = {
  "finds an answer by its scope and key": async (answers) => {
    await store(answers, answer());
    await store(answers, bare({ key: "bare", status: 400 }));
    await store(answers, answer({ key: "empty", body: new Uint8Array() }));
    assertEquals(await answers.find("s", "k"), answer());
    assertEquals(await answers.find("s", "bare"), bare({ key: "bare", status: 400 }));
    assertEquals((await answers.find("s", "empty"))?.body, new Uint8Array());
    assertEquals([await answers.find("s", "K"), await answers.find("S", "k")], [undefined, undefined]);
  },
  "stores a large body as it is": async (answers) => {
    const body = Uint8Array.from({ length: 3_000_001 }, (_, at) => at * 31 % 251);
    await store(answers, answer({ body }));
    const found = (await answers.find("s", "k"))?.body;
    assert(found?.length === body.length && found.every((byte, at) => byte === body[at]));
  },
  "tells the size of a body before it is read, so that the reader can refuse it": async (answers) => {
    await store(answers, answer());
    await store(answers, bare({ key: "bare" }));
    const sizes: number[] = [];
    const note = (bytes: number) => void sizes.push(bytes);
    assertEquals((await answers.find("s", "k", note))?.body?.length, 10);
    for (const key of ["bare", "none"]) await answers.find("s", key, note);
    assertEquals(sizes, [10]);
    const refuse = () => {
      throw new RangeError("too much");
    };
    await assertRejects(() => answers.find("s", "k", refuse), RangeError, "too much");
  },
  "replaces an older answer, with or without a body": async (answers) => {
    const other = { status: 400, requestHash: "b".repeat(64), doneAt: 2000, body: Uint8Array.of(1, 2) };
    await store(answers, answer(), { maxBytes: 10 });
    await store(answers, answer(other), { maxBytes: 10 });
    assertEquals(await answers.find("s", "k"), answer(other));
    await store(answers, bare({ doneAt: 3000 }), { maxBytes: 10 });
    assertEquals(await answers.find("s", "k"), bare({ doneAt: 3000 }));
    await store(answers, answer({ key: "k2" }), { maxBytes: 10 });
    assertEquals((await answers.find("s", "k2"))?.body?.length, 10);
  },
  "stores a body only where it fits beside all others, of those that come at once too": async (answers) => {
    const put = (key: string, body: Uint8Array<ArrayBuffer> = new Uint8Array(10)) =>
      store(answers, answer({ key, body }), { maxBytes: 25 });
    await Promise.all([put("k1"), put("k2"), put("k3"), put("k4")]);
    const stored = await lengths(answers);
    assertEquals(stored.toSorted(), [10, 10, null, null]);
    const [free, full] = [stored.indexOf(null) + 1, stored.lastIndexOf(null) + 1];
    await put(`k${free}`, new Uint8Array(5));
    await put(`k${full}`, new Uint8Array(1));
    assertEquals((await lengths(answers)).toSorted(), [10, 10, 5, null]);
  },
  "deletes answers by age, and the oldest of too many": async (answers) => {
    await addFour(answers);
    await settle(answers, { until: 1 });
    assertEquals(await lengths(answers), [undefined, 10, 10, 10]);
    await settle(answers, { maxAnswers: 2 });
    assertEquals(await lengths(answers), [undefined, undefined, 10, 10]);
  },
  "drops bodies, the oldest first, and still knows their answers": async (answers) => {
    await addFour(answers);
    await settle(answers, { maxBytes: 25 });
    assertEquals(await lengths(answers), [null, null, 10, 10]);
    assertEquals(await answers.find("s", "k1"), bare({ key: "k1", doneAt: 1 }));
    await settle(answers, { maxBytes: 0 });
    assertEquals(await lengths(answers), [null, null, null, null]);
  },
  "makes room at the cost of the scope that has the most": async (answers) => {
    await store(answers, answer({ scope: "other", doneAt: 1 }));
    for (let index = 0; index < 30; index++) {
      await store(answers, answer({ key: `many${index}`, doneAt: 2 + index, body: Uint8Array.of(1, 2, 3) }));
    }
    const found = () =>
      Promise.all([answers.find("other", "k"), answers.find("s", "many25"), answers.find("s", "many26")]);
    const bodies = async () => (await found()).map((record) => record && (record.body?.length ?? null));
    await settle(answers, { maxBytes: 22 });
    assertEquals(await bodies(), [10, null, 3]);
    await settle(answers, { maxAnswers: 5 });
    assertEquals(await bodies(), [10, undefined, 3]);
    await settle(answers, { maxBytes: 10 });
    assertEquals(await bodies(), [10, undefined, null]);
    await settle(answers, { maxAnswers: 1 });
    assertEquals((await bodies())[0], 10);
  },
  "prunes many a few at a time": async (answers) => {
    for (let index = 0; index < 50; index++) {
      await store(answers, answer({ key: `many${index}`, doneAt: index, body: Uint8Array.of(index) }));
    }
    let calls = 1;
    while (await answers.prune({ until: -1, maxBytes: 5, maxAnswers: 100 })) calls++;
    assert(calls > 2, `${calls}`);
    assertEquals((await answers.find("s", "many44"))?.body, undefined);
    assertEquals((await answers.find("s", "many45"))?.body, Uint8Array.of(45));
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
    const begun = performance.now();
    await answers.claim(claim(), 40);
    await answers.claim(claim({ key: "renewed" }), 1);
    await answers.claim(claim({ key: "renewed" }), LONG_MS);
    const next = claim({ holder: "two" });
    await until("the end of the claim", async () => !await answers.isClaimed("s", "k"));
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
  "stores an answer only for the holder of the claim, even if its lease is over": async (answers) => {
    const put = (status: number, holder: string) => answers.put(answer({ status }), { ...ROOM, holder });
    await put(501, "one");
    assertEquals(await answers.find("s", "k"), undefined);
    await answers.claim(claim(), 1);
    await until("the end of the claim", async () => !await answers.isClaimed("s", "k"));
    await put(200, "one");
    assertEquals((await answers.find("s", "k"))?.status, 200);
    await answers.claim(claim({ holder: "two" }), LONG_MS, "one");
    await put(502, "one");
    await put(201, "two");
    await put(503, "one");
    await answers.release(claim({ holder: "two" }));
    await put(504, "one");
    assertEquals((await answers.find("s", "k"))?.status, 201);
  },
  "returns copies of answers": async (answers) => {
    const record = answer();
    await store(answers, record);
    record.body?.fill(9);
    record.status = 500;
    (await answers.find("s", "k"))?.body?.fill(9);
    assertEquals(await answers.find("s", "k"), answer());
  },
};

/** Tests a kind of store. `open` passes an empty one to the test and removes it afterwards. */
export function testAnswers(
  name: string,
  open: (test: (answers: AnswerStore) => Promise<void>) => Promise<void>,
  options: Pick<Deno.TestDefinition, "ignore"> = {},
): void {
  for (const [claim, behaviour] of Object.entries(BEHAVIOURS)) {
    Deno.test(`${name} ${claim}`, options, () => open(behaviour));
  }
}
