import { assert, assertEquals, assertLess, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { GatewayError } from "../../lib/errors.ts";
import type { StoredAnswer } from "../../lib/images/replay_cache.ts";
import type { IdempotencyParts, RepeatableRequest } from "../../lib/images/idempotency.ts";
import { readIdempotencyKey } from "../../lib/images/answer_once.ts";
import type { AnswerStore } from "../../lib/store/answers.ts";
import { openMemoryStore } from "../../lib/store/sqlite/memory.ts";
import { openSqliteStore } from "../../lib/store/sqlite/store.ts";
import { createClock } from "../billing/simulator/clock.ts";
import { idempotency, settle, simulate, simulateSeeds } from "./idempotency_histories.ts";
import { rounds } from "../support/skip.ts";
import { watchTurns } from "../support/turns.ts";

const HASH = "a".repeat(64);
const MIB = 1024 * 1024;

function request(work: RepeatableRequest["work"], change: Partial<RepeatableRequest> = {}): RepeatableRequest {
  return { scope: "key_1 edits", key: "k", requestHash: HASH, signal: new AbortController().signal, work, ...change };
}

function answer(text: string, status = 200): StoredAnswer {
  return { status, headers: { "content-type": "application/json" }, body: new TextEncoder().encode(text) };
}

function replayed(given: StoredAnswer): StoredAnswer {
  return { ...given, headers: { ...given.headers, "x-sluice-idempotent-replay": "true" } };
}

const never = () => Promise.reject(new Error("this must not run"));

/** Work that ends on command. */
function controlled() {
  const { promise, resolve, reject } = Promise.withResolvers<StoredAnswer>();
  let signal: AbortSignal | undefined;
  return {
    resolve,
    reject,
    signal: () => signal,
    work: (given: AbortSignal) => {
      signal = given;
      return promise;
    },
  };
}

Deno.test("Idempotency.run() does not store answers with status 429 or 5xx", async () => {
  for (
    const [status, kept] of [[200, true], [400, true], [404, true], [429, false], [500, false], [503, false]] as const
  ) {
    const once = idempotency();
    assertEquals(await once.run(request(() => Promise.resolve(answer("one", status)))), answer("one", status));
    const again = await once.run(request(() => Promise.resolve(answer("two"))));
    assertEquals(again, kept ? replayed(answer("one", status)) : answer("two"), String(status));
  }
});

Deno.test("Idempotency.run() limits number and time of waiting repeats", async () => {
  const once = idempotency({ maxWaiting: 1, waitMs: 20 });
  const first = controlled();
  const run = once.run(request(first.work));
  const [one, two] = [once.run(request(never)), once.run(request(never))];
  for (const repeat of [two, one]) {
    const error = await assertRejects(() => repeat, GatewayError);
    assertEquals([error.status, error.retryAfterMs], [429, 5000]);
  }
  assertEquals(first.signal()?.aborted, false);
  first.resolve(answer("one"));
  assertEquals(await run, answer("one"));
});

Deno.test("Idempotency.run() records an answer that is too large as done", async () => {
  const once = idempotency({ maxAnswerBytes: 3 });
  assertEquals(await once.run(request(() => Promise.resolve(answer("four")))), answer("four"));
  const error = await assertRejects(() => once.run(request(never)), GatewayError);
  assertEquals([error.status, error.code], [400, "idempotent_answer_gone"]);
  assertStringIncludes(error.message, "use a new key");
  await assertRejects(() => once.run(request(never, { requestHash: "b".repeat(64) })), GatewayError, "another request");
});

Deno.test("Idempotency.run() evicts the oldest answers beyond the limit and records them as done", async () => {
  const store = openMemoryStore();
  const once = idempotency({ store, maxBytes: 10, maxAnswerBytes: 6, maxAnswers: 4 });
  const give = (key: string, text: string) => once.run(request(() => Promise.resolve(answer(text)), { key }));
  for (const [key, text] of [["a", "aaaa"], ["b", "bbbb"], ["c", "cccccc"]] as const) await give(key, text);
  await assertRejects(() => give("a", "no"), GatewayError, "was not stored");
  assertEquals(await give("b", "no"), replayed(answer("bbbb")));
  assertEquals(await give("c", "no"), replayed(answer("cccccc")));
  for (const key of ["d", "e", "f"]) await give(key, "");
  await once.sweep();
  assertEquals(await give("a", "new"), answer("new"));
});

Deno.test("Idempotency.run() replays answers after a restart until they expire", async () => {
  const folder = await Deno.makeTempDir();
  try {
    let now = 0;
    const body = new Uint8Array(5 * MIB + 1);
    for (let at = 0; at < body.length; at += 65_536) crypto.getRandomValues(body.subarray(at, at + 65_536));
    const big = { ...answer(""), body };
    const run = async (work: RepeatableRequest["work"]) => {
      const store = openSqliteStore(`${folder}/sluice.db`);
      const once = idempotency({ store, now: () => now, maxBytes: 64 * MIB, maxAnswerBytes: 32 * MIB });
      try {
        using turns = watchTurns();
        const given = await Promise.all([once.run(request(work)), once.run(request(never))]);
        assertLess(turns.longestWork(), 1_000);
        await once.sweep();
        return { given, stored: (await store.answers.find("key_1 edits", "k"))?.body?.length };
      } finally {
        await store.close();
      }
    };
    await run(() => Promise.resolve(big));
    const { given: [again, twice], stored } = await run(never);
    assertEquals([again.headers, again.status], [replayed(big).headers, 200]);
    assert(again.body.every((byte, at) => byte === body[at]) && again.body.length === body.length);
    assert(again.body === twice.body);
    assertEquals(stored, body.length);
    now = 1000;
    assertEquals((await run(() => Promise.resolve(answer("new")))).stored, 3);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("Idempotency.run() stores an answer as soon as the store is reachable, within half a minute", async () => {
  for (const [downMs, isReplayed] of [[25_000, true], [35_000, false]] as const) {
    const clock = createClock(0);
    const { now, monotonic, later } = clock;
    const { answers } = openMemoryStore(monotonic);
    const causes: unknown[] = [];
    const full = new Error("database or disk is full");
    const put: AnswerStore["put"] = (...given) => now() < downMs ? Promise.reject(full) : answers.put(...given);
    const report = (cause: unknown) => void causes.push(cause);
    const once = idempotency({ store: { answers: { ...answers, put } }, now, monotonic, later, windowMs: 1e6, report });
    assertEquals(await once.run(request(() => Promise.resolve(answer("one")))), answer("one"));
    const repeat = once.run(request(never));
    repeat.catch(() => {});
    await clock.pass(downMs + 2_000);
    if (isReplayed) assertEquals(await repeat, replayed(answer("one")));
    else await assertRejects(() => repeat, GatewayError, "was not stored");
    assertEquals([causes, clock.timers], [isReplayed ? [] : [full], 0]);
  }
});

Deno.test("Idempotency.close() cancels the work", async () => {
  const once = idempotency();
  const run = once.run(
    request((signal) =>
      new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)))
    ),
  );
  await settle();
  const closed = once.close();
  await assertRejects(() => run, DOMException, "Closed");
  await closed;
});

Deno.test("Idempotency.close() waits for a last attempt to store an answer, which other nodes then find", async () => {
  const { answers } = openMemoryStore();
  let isUp = false;
  const put: AnswerStore["put"] = (...given) => isUp ? answers.put(...given) : Promise.reject(new Error("away"));
  const once = idempotency({ store: { answers: { ...answers, put } } });
  await once.run(request(() => Promise.resolve(answer("one"))));
  isUp = true;
  await once.close();
  assertEquals(await idempotency({ store: { answers } }).run(request(never)), replayed(answer("one")));
});

Deno.test("readIdempotencyKey() accepts 1 to 255 printable characters and rejects streams", () => {
  const read = (key: string | undefined, stream = false) =>
    readIdempotencyKey(new Headers(key === undefined ? {} : { "idempotency-key": key }), { stream });
  assertEquals(read(undefined), undefined);
  assertEquals(read(undefined, true), undefined);
  for (const key of ["a", "x".repeat(255), "8e03978e-40d5-43dd-bc93-6894a57f9324", 'a b~!"']) {
    assertEquals(read(key), key);
  }
  for (const key of ["", "x".repeat(256), "a\tb", "\u00e9"]) assertThrows(() => read(key), GatewayError, "1 to 255");
  assertThrows(() => read("a", true), GatewayError, "stream");
});

/** Lookups that finish on command; after a claim, another lookup starts at once. */
function lookedFor() {
  const { answers } = openMemoryStore();
  const looks: { go: () => void; fail: (error: Error) => void }[] = [];
  let claimed = false;
  const far: AnswerStore = {
    ...answers,
    find(scope, key) {
      if (claimed) return answers.find(scope, key);
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      looks.push({ go: resolve, fail: reject });
      return promise.then(() => answers.find(scope, key));
    },
    claim(...given) {
      claimed = true;
      return answers.claim(...given);
    },
    release(...given) {
      claimed = false;
      return answers.release(...given);
    },
  };
  return { looks, once: idempotency({ store: { answers: far } }) };
}

Deno.test("a client that disconnects during the lookup, or a failed lookup, does not block others", async () => {
  const { looks, once } = lookedFor();
  const clients = [1, 2].map(() => new AbortController());
  const left = clients.map(({ signal }) => once.run(request(never, { signal })));
  const [failing, last] = [once.run(request(never)), once.run(request(() => Promise.resolve(answer("one"))))];
  for (const [index, client] of clients.toReversed().entries()) {
    const gone = new DOMException("gone", "AbortError");
    client.abort(gone);
    assertEquals(await assertRejects(() => left[1 - index] ?? never()), gone);
  }
  // The work for the client that disconnected is discarded.
  looks[0]?.go();
  await settle();
  assertEquals(looks.length, 2);
  const outage = new Error("no such store");
  looks[1]?.fail(outage);
  const reported = await assertRejects(() => failing, GatewayError, "the store does not answer");
  assertEquals([reported.status, reported.cause], [503, outage]);
  await settle();
  looks[2]?.go();
  assertEquals(await last, answer("one"));
});

/** Two nodes on one store, and their time. */
function twoNodes(change: Partial<IdempotencyParts> = {}) {
  const clock = createClock(0);
  const answers = openMemoryStore(clock.monotonic).answers;
  const { now, monotonic, later } = clock;
  const open = () => idempotency({ store: { answers }, now, monotonic, later, windowMs: 1e6, ...change });
  return { clock, answers, one: open(), two: open() };
}

Deno.test("work that a dead node had charged is not repeated", async () => {
  const charged = new Set<string>();
  const isCharged = (id: string) => Promise.resolve(charged.has(id));
  const { clock, answers, one, two } = twoNodes({ isCharged });
  const first = controlled();
  one.run(request(first.work, { requestId: "r1" })).catch(() => {});
  await clock.pass(5_000);
  charged.add("r1");
  clock.stop();
  const repeat = two.run(request(never, { requestId: "r2" }));
  repeat.catch(() => {});
  await clock.pass(60_000);
  const error = await assertRejects(() => repeat, GatewayError, "was not stored");
  assertEquals([error.status, error.code], [400, "idempotent_answer_gone"]);
  const other = { requestHash: "b".repeat(64), requestId: "r3" };
  await assertRejects(() => two.run(request(never, other)), GatewayError, "another request");
  assertEquals([await answers.isClaimed("key_1 edits", "k"), clock.timers], [false, 0]);
});

Deno.test("work that failed after its charge is not repeated, and an unknown state is a 503", async () => {
  let isDown = false;
  const isCharged = (id: string) => isDown ? Promise.reject(new Error("no store")) : Promise.resolve(id === "charged");
  const { clock, answers, one, two } = twoNodes({ isCharged });
  const fail = () => Promise.reject(new Error("the isolate died"));
  for (const [requestId, says] of [["charged", "was not stored"], ["free", "the isolate died"]] as const) {
    await assertRejects(() => one.run(request(fail, { key: requestId, requestId })), Error, "the isolate died");
    await assertRejects(() => two.run(request(fail, { key: requestId, requestId: "r2" })), Error, says);
  }
  await answers.claim({ scope: "key_1 edits", key: "over", requestHash: HASH, holder: "charged" }, -1);
  isDown = true;
  const error = await assertRejects(() => two.run(request(never, { key: "over" })), GatewayError, "does not answer");
  assertEquals(error.status, 503);
  isDown = false;
  await assertRejects(() => two.run(request(never, { key: "over" })), GatewayError, "was not stored");
  assertEquals(clock.timers, 0);
});

Deno.test("a node that missed its lease gives up the work if another node has done it", async () => {
  for (const isDone of [false, true]) {
    const held: (() => void)[] = [];
    const clock = createClock(0);
    const answers = openMemoryStore(clock.monotonic).answers;
    const { now, monotonic } = clock;
    let isAway = false;
    const paused = idempotency({
      store: { answers },
      now,
      monotonic,
      windowMs: 1e6,
      later: (run, ms) => clock.later(() => isAway ? held.push(run) : run(), ms),
    });
    const first = controlled();
    const run = paused.run(request(first.work));
    await settle();
    isAway = true;
    const other = idempotency({ store: { answers }, now, monotonic, later: clock.later, windowMs: 1e6 });
    const repeat = other.run(request(() => Promise.resolve(answer("two")), isDone ? {} : { key: "another" }));
    await clock.pass(60_000);
    assertEquals(await repeat, answer("two"));
    for (const each of held) each();
    await settle();
    assertEquals(first.signal()?.aborted, isDone);
    first.reject(first.signal()?.reason ?? new Error("failed"));
    await assertRejects(() => run, Error, isDone ? "was disconnected" : "failed");
    await clock.pass(60_000);
  }
});

Deno.test("work that cannot be recorded as done stays claimed and is not repeated", async () => {
  const clock = createClock(0);
  const answers = openMemoryStore(clock.monotonic).answers;
  let isUp = false;
  const put: AnswerStore["put"] = (...given) => isUp ? answers.put(...given) : Promise.reject(new Error("full"));
  const { now, monotonic, later } = clock;
  const once = idempotency({
    store: { answers: { ...answers, put } },
    now,
    monotonic,
    later,
    windowMs: 1e6,
    report: () => {},
  });
  assertEquals(await once.run(request(() => Promise.resolve(answer("one")))), answer("one"));
  const repeat = once.run(request(never));
  repeat.catch(() => {});
  await clock.pass(100_000);
  isUp = true;
  await clock.pass(2_000);
  await assertRejects(() => repeat, GatewayError, "was not stored");
  assertEquals([await answers.isClaimed("key_1 edits", "k"), clock.timers], [false, 0]);
});

Deno.test("waiting for another node is limited in number and time, and needs the store", async () => {
  const { clock, one, two, answers } = twoNodes({ maxWaiting: 1, waitMs: 20 });
  const first = controlled();
  const run = one.run(request(first.work));
  await settle();
  const refused = [1, 2, 3].map(() => assertRejects(() => two.run(request(never)), GatewayError));
  for (const error of await Promise.all(refused)) assertEquals([error.status, error.retryAfterMs], [429, 5000]);
  first.resolve(answer("one"));
  assertEquals(await run, answer("one"));
  await clock.pass(1_000);
  assertEquals(clock.timers, 0);
  for (const name of ["find", "claim"] as const) {
    const broken = { ...answers, [name]: () => Promise.reject(new Error("connection refused")) };
    const once = idempotency({ store: { answers: broken }, windowMs: 1e6, now: clock.now });
    const key = name === "claim" ? "new" : "k";
    const error = await assertRejects(() => once.run(request(never, { key })), GatewayError, "does not answer");
    assertEquals([error.status, error.retryAfterMs], [503, 5000], name);
  }
});

Deno.test("the answer of another node is read by a client that still waits", async () => {
  const { clock, one, two } = twoNodes();
  const first = controlled();
  const run = one.run(request(first.work));
  await settle();
  const client = new AbortController();
  const reserved: number[] = [];
  // The meter of a request that has ended admits nothing.
  const left = two.run(
    request(never, { signal: client.signal, reserve: () => Promise.reject(new TypeError("ended")) }),
  );
  const waiting = two.run(request(never, {
    reserve: (bytes) => {
      reserved.push(bytes);
      return Promise.resolve();
    },
  }));
  await settle();
  client.abort();
  await assertRejects(() => left, DOMException);
  first.resolve(answer("one"));
  assertEquals(await run, answer("one"));
  await clock.pass(1_000);
  assertEquals([await waiting, reserved], [replayed(answer("one")), [3]]);
});

Deno.test("in random histories on one to three nodes, a request is done once per window and everyone gets the right answer", () =>
  simulateSeeds(1, rounds(300)));

Deno.test("random histories keep that with answers in a file", async () => {
  const folder = await Deno.makeTempDir();
  try {
    for (let seed = 1; seed <= 6; seed++) await simulate(seed, { path: `${folder}/${seed}.db`, nodes: seed % 3 + 1 });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
