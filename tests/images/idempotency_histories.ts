/** Random histories of requests with idempotency keys, on one or several nodes, checked after every step. */
import { assert, assertEquals } from "@std/assert";
import { GatewayError } from "../../lib/errors.ts";
import { Idempotency, type IdempotencyParts } from "../../lib/images/idempotency.ts";
import type { StoredAnswer } from "../../lib/images/replay_cache.ts";
import type { AnswerStore } from "../../lib/store/answers.ts";
import { openSqliteAnswers } from "../../lib/store/sqlite/answers.ts";
import { connect } from "../../lib/store/sqlite/connect.ts";
import { openMemoryStore } from "../../lib/store/sqlite/memory.ts";
import { openSqliteStore } from "../../lib/store/sqlite/store.ts";
import { createClock } from "../billing/simulator/clock.ts";
import { seeded } from "../support/random.ts";

/** A part with small limits, whose failures to store fail the test. */
export function idempotency({ store = openMemoryStore(), ...change }: Partial<IdempotencyParts> = {}): Idempotency {
  return new Idempotency({
    store,
    now: () => 0,
    windowMs: 1000,
    maxBytes: 1000,
    report: (cause) => {
      throw cause;
    },
    ...change,
  });
}

/** Lets everything happen that needs no time. */
export async function settle(): Promise<void> {
  for (let count = 0; count < 200; count++) await Promise.resolve();
}

/** A distant store: every call takes a few microtasks before its effect, and a few after it. */
function farAway(answers: AnswerStore, turns: () => number): AnswerStore {
  const later = async <T>(call: () => Promise<T>): Promise<T> => {
    for (let left = turns(); left > 0; left--) await Promise.resolve();
    const value = await call();
    for (let left = turns(); left > 0; left--) await Promise.resolve();
    return value;
  };
  return {
    find: (...given) => later(() => answers.find(...given)),
    put: (...given) => later(() => answers.put(...given)),
    claim: (...given) => later(() => answers.claim(...given)),
    isClaimed: (...given) => later(() => answers.isClaimed(...given)),
    release: (...given) => later(() => answers.release(...given)),
    prune: (...given) => later(() => answers.prune(...given)),
  };
}

/** One process in the simulator. */
interface Process {
  once: Idempotency;
  alive: boolean;
}

/** One request in the simulator. */
interface Call {
  process: Process;
  key: string;
  hash: string;
  client: AbortController;
  outcome?: { answer: StoredAnswer } | { error: unknown };
}

/** One piece of work in the simulator. */
interface Work {
  process: Process;
  key: string;
  hash: string;
  serial: number;
  signal: AbortSignal;
  /** True if it was stopped because no request waited for it any more. */
  stopped: boolean;
  resolve: (answer: StoredAnswer) => void;
  reject: (error: unknown) => void;
}

/** Plays clients, works, time and restarts against each other by chance, and checks after every step. */
export async function simulate(
  seed: number,
  { path, isFar = false, nodes = 1 }: { path?: string; isFar?: boolean; nodes?: number },
  seen = new Map<string, number>(),
): Promise<void> {
  const see = (what: string) => seen.set(what, (seen.get(what) ?? 0) + 1);
  const { below } = seeded(seed);
  const [windowMs, maxBytes, maxAnswerBytes, leaseMs] = [100, 60, 30, 50];
  const clock = createClock(0);
  if (path !== undefined) await openSqliteStore(path).close();
  const file = path === undefined ? undefined : connect(path, "FULL");
  const kept = file === undefined ? openMemoryStore(clock.monotonic).answers : openSqliteAnswers(file, clock.monotonic);
  const answers = isFar ? farAway(kept, () => below(4)) : kept;
  let serial = 0;
  const open = (): Process => {
    const process: Process = {
      alive: true,
      once: idempotency({
        store: { answers },
        now: clock.now,
        monotonic: clock.monotonic,
        later: (run, ms) => clock.later(() => process.alive && run(), ms),
        windowMs,
        leaseMs,
        maxBytes,
        maxAnswerBytes,
        maxWaiting: 100,
        waitMs: 1e9,
      }),
    };
    return process;
  };
  const processes = Array.from({ length: nodes }, open);
  let calls: Call[] = [];
  let works: Work[] = [];
  /** Completed work by key: the one charge that its window allows. */
  const done = new Map<string, { hash: string; serial: number; at: number }>();
  const errors = new Map<unknown, Work>();
  const bySerial = new Map<number, Work>();

  const isDone = (key: string) => clock.now() - (done.get(key)?.at ?? -Infinity) < windowMs;
  const waiting = ({ process, key, hash }: Work) =>
    calls.filter((call) =>
      call.process === process && call.key === key && call.hash === hash && call.outcome === undefined &&
      !call.client.signal.aborted
    ).length;
  /** Work of dead processes, which stays claimed until their leases end. */
  let ghosts: { key: string; hash: string; from: number }[] = [];

  /** `key hash` of all that has moved since everything was last at rest. */
  const touched = new Set<string>();
  const isOther = (key: string, hash: string) =>
    [...calls.filter((call) => call.outcome === undefined), ...works, ...ghosts].some((it) =>
      it.key === key && it.hash !== hash
    ) ||
    [...touched].some((it) => it.startsWith(`${key} `) && it !== `${key} ${hash}`) ||
    isDone(key) && done.get(key)?.hash !== hash;
  const rest = async () => {
    await settle();
    touched.clear();
  };

  function begin(): void {
    const [key, hash] = [`k${below(3)}`, "ab".charAt(Math.floor(below(5) / 4)).repeat(64)];
    const process = processes[below(nodes)] as Process;
    const call: Call = { process, key, hash, client: new AbortController() };
    const wasOther = isOther(key, hash);
    touched.add(`${key} ${hash}`);
    const polite = below(2) === 0;
    calls.push(call);
    const run = process.once.run({
      scope: "s",
      key,
      requestHash: hash,
      signal: call.client.signal,
      work: (signal) => {
        // The last renewal is up to a third of the lease old.
        const late = ghosts.filter(({ from }) => clock.now() - from < leaseMs * 2 / 3);
        assert(![...works, ...late].some((work) => work.key === key), "two works for one key at once");
        assert(!isDone(key), "a second charge within the window");
        const { promise, resolve, reject } = Promise.withResolvers<StoredAnswer>();
        const work: Work = { process, key, hash, serial: ++serial, signal, stopped: false, resolve, reject };
        works.push(work);
        bySerial.set(work.serial, work);
        signal.addEventListener("abort", () => {
          if (!process.alive) return;
          see("stopped");
          work.stopped = true;
          assertEquals(waiting(work), 0, "stopped although somebody waits");
          if (polite) end(work, () => reject(signal.reason));
        });
        return promise;
      },
    });
    run.then(
      (given) => {
        call.outcome = { answer: given };
        see(`${given.status} ${given.headers["x-sluice-idempotent-replay"] ?? "first"}`);
        const [word, byHash, number] = new TextDecoder().decode(given.body).trim().split(" ");
        if (given.status >= 429) {
          assert(bySerial.get(Number(number))?.stopped === false, "the failure of stopped work");
        }
        assertEquals([word, byHash], [key, hash.charAt(0)], "an answer of another request");
        if (given.status === 200 && given.headers["x-sluice-idempotent-replay"] === "true") {
          assertEquals(Number(number), done.get(key)?.serial, "a replay of something else");
        }
      },
      (error) => {
        call.outcome = { error };
        see(error instanceof GatewayError ? error.code ?? error.kind : "left");
        if (call.client.signal.aborted && error === call.client.signal.reason) return;
        const failed = errors.get(error);
        if (failed !== undefined) return assert(!failed.stopped, "the failure of stopped work");
        assert(error instanceof GatewayError, String(error));
        if (error.code === "idempotency_key_reused") {
          assert(wasOther || isOther(key, hash), "refused for no other request");
        } else {
          assertEquals(error.code, "idempotent_answer_gone");
          assert(isDone(key) && done.get(key)?.hash === hash, "said to be done");
        }
      },
    ).catch((error) => void broken.push(error));
  }
  const broken: unknown[] = [];

  function end(work: Work, settleWork: () => void): void {
    works = works.filter((other) => other !== work);
    touched.add(`${work.key} ${work.hash}`);
    settleWork();
  }

  function finish(work: Work): void {
    const [status, size] = [[200, 200, 400, 429, 500, 0][below(6)] ?? 0, below(40)];
    if (status === 0) {
      const error = new GatewayError("upstream", `failure ${serial}`);
      errors.set(error, work);
      return end(work, () => work.reject(error));
    }
    if (status < 429) done.set(work.key, { hash: work.hash, serial: work.serial, at: clock.now() });
    const text = `${work.key} ${work.hash.charAt(0)} ${work.serial} `.padEnd(size);
    end(work, () => work.resolve({ status, headers: {}, body: new TextEncoder().encode(text) }));
  }

  for (let step = 0; step < 80; step++) {
    const [call, work] = [calls[below(calls.length || 1)], works[below(works.length || 1)]];
    const dice = below(20);
    if (dice < 8) begin();
    else if (dice < 12) {
      call?.client.abort(new DOMException("gone", "AbortError"));
      if (call !== undefined) touched.add(`${call.key} ${call.hash}`);
    } else if (dice < 16) { if (work !== undefined) finish(work); }
    else if (dice < 19) {
      await rest();
      for (let left = below(60); left > 0; left -= 5) {
        await clock.pass(Math.min(5, left));
        await settle();
      }
      ghosts = ghosts.filter(({ from }) => clock.now() - from < leaseMs);
    } else {
      // A process dies: its work never ends, and it stays silent.
      await rest();
      const index = below(nodes);
      const dead = processes[index] as Process;
      dead.alive = false;
      processes[index] = open();
      const isDead = ({ process }: { process: Process }) => process === dead;
      ghosts.push(...works.filter(isDead).map(({ key, hash }) => ({ key, hash, from: clock.now() })));
      const left = calls.filter(isDead);
      calls = calls.filter((call) => !isDead(call));
      works = works.filter((work) => !isDead(work));
      for (const { client } of left) client.abort(new DOMException("died", "AbortError"));
    }
    if (below(3) > 0) await rest();
    const stored = await Promise.all([...done.keys()].map((key) => kept.find("s", key)));
    assert(stored.reduce((sum, found) => sum + (found?.body?.length ?? 0), 0) <= maxBytes, "more bytes than allowed");
    assertEquals(broken, []);
  }
  for (let round = 0; round < 40 && calls.some(({ outcome }) => outcome === undefined); round++) {
    for (const work of works) finish(work);
    await settle();
    // In small steps: a process that pauses for longer than its lease may lose its work to another one.
    for (let step = 0; step < 20; step++) {
      await clock.pass(5);
      await settle();
    }
    ghosts = [];
  }
  for (const { outcome } of calls) assert(outcome !== undefined, "somebody still waits");
  assertEquals(broken, []);
  await file?.close();
}

/** Runs seeds over one to three nodes, near and far; checks that every kind of ending came, of 300 seeds in each world. */
export async function simulateSeeds(first: number, count: number): Promise<void> {
  const seen = Array.from({ length: count < 300 ? 1 : 6 }, () => new Map<string, number>());
  for (let seed = first; seed < first + count; seed++) {
    try {
      await simulate(seed, { nodes: seed % 3 + 1, isFar: seed % 2 === 0 }, seen[seed % seen.length]);
    } catch (cause) {
      throw new Error(`seed ${seed}`, { cause });
    }
  }
  const ways = ["200 first", "200 true", "400 first", "400 true", "429 first", "429 true", "500 first", "500 true"];
  for (const way of [...ways, "upstream", "stopped", "left", "idempotency_key_reused", "idempotent_answer_gone"]) {
    for (const counts of seen) assert((counts.get(way) ?? 0) > 0, `${way}: ${counts.get(way)}`);
  }
}
