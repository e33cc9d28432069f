import { assert, assertEquals } from "@std/assert";
import type {
  Health,
  HealthChange,
  Permit,
  PermitDecision,
  PermitRequest,
  ProbeAnswer,
  TargetKey,
  TargetOutcome,
} from "../../lib/routing/health.ts";
import { HealthTracker } from "../../lib/routing/health_tracker.ts";
import { BREAKER } from "./breaker.ts";

const SUCCESS: TargetOutcome = { type: "success" };
const FAILURE: TargetOutcome = { type: "failure" };
const UNREACHABLE: TargetOutcome = { type: "unreachable" };

/** Health with a clock of its own. */
interface Clocked {
  health: Health;
  changes: HealthChange[];
  pass(ms: number): void;
  /** Number of timers that run. */
  timers(): number;
  /** Results of upstream probes; absent: there is no probe. */
  answers: Record<string, ProbeAnswer>;
  /** Upstreams that were probed. */
  probed: string[];
  /** Returns the permit of a request that must be admitted. */
  admit(request: PermitRequest): Permit;
  /** Sends requests, one after another, of one outcome. */
  send(request: PermitRequest, times: number, outcome: TargetOutcome): void;
  state(place: TargetKey): string | undefined;
}

/** Timers of a clock that a test moves. */
class Timers {
  now = 0;
  #due: { at: number; run: () => void }[] = [];

  readonly later = (run: () => void, ms: number): () => void => {
    const due = { at: this.now + ms, run };
    this.#due.push(due);
    return () => this.#due = this.#due.filter((other) => other !== due);
  };

  get count(): number {
    return this.#due.length;
  }

  pass(ms: number): void {
    const end = this.now + ms;
    for (;;) {
      const next = this.#due.filter(({ at }) => at <= end).toSorted((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      this.#due = this.#due.filter((other) => other !== next);
      this.now = Math.max(this.now, next.at);
      next.run();
    }
    this.now = end;
  }
}

function clocked(random = () => 0.5): Clocked {
  const timers = new Timers();
  const changes: HealthChange[] = [];
  const answers: Record<string, ProbeAnswer> = {};
  const probed: string[] = [];
  const health = new HealthTracker({
    breaker: BREAKER,
    monotonic: () => timers.now,
    now: () => 1_000_000 + timers.now,
    random,
    later: timers.later,
    probe(upstream) {
      const answer = answers[upstream];
      if (answer === undefined) return undefined;
      probed.push(upstream);
      return Promise.resolve(answer);
    },
    changed: (change) => changes.push(change),
  });
  const self: Clocked = {
    health,
    changes,
    answers,
    probed,
    pass: (ms) => timers.pass(ms),
    timers: () => timers.count,
    admit(permitRequest) {
      const admission = health.acquirePermit(permitRequest);
      assert(admission.granted, JSON.stringify(admission));
      return admission.permit;
    },
    send(permitRequest, times, outcome) {
      for (let time = 0; time < times; time++) health.report(self.admit(permitRequest), outcome);
    },
    state: ({ upstream, model }) =>
      health.snapshot().find((row) => row.upstream === upstream && row.model === model)?.state,
  };
  return self;
}

function place(upstream: string, model = "m"): TargetKey {
  return { upstream, model };
}

/** A model and its targets; the first of them is used. */
function permitRequest(first: TargetKey, ...others: TargetKey[]): PermitRequest {
  return { model: { id: `acme/${first.model}`, targets: [first, ...others] }, target: first, key: "k1" };
}

/** The same, for another client key. */
function by(key: string, request: PermitRequest): PermitRequest {
  return { ...request, key };
}

/** Runs the reactions to promises that are already settled. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await null;
}

function waitOf(admission: PermitDecision): [string, number] | undefined {
  return admission.granted ? undefined : [admission.why, admission.waitMs];
}

Deno.test("a breaker opens at five failures in a row, or at half of ten requests, not before", () => {
  const one = permitRequest(place("a"));
  const cases: [outcomes: TargetOutcome[], opens: boolean][] = [
    [Array(4).fill(FAILURE), false],
    [Array(5).fill(FAILURE), true],
    [[...Array(4).fill(FAILURE), SUCCESS, ...Array(4).fill(FAILURE)], false],
    [[...Array(4).fill(FAILURE), SUCCESS, ...Array(4).fill(FAILURE), SUCCESS, FAILURE], true],
    [[FAILURE, ...Array(5).fill([SUCCESS, FAILURE]).flat()], true],
    [[FAILURE, ...Array(4).fill([SUCCESS, SUCCESS, FAILURE]).flat()], false],
    [Array(4).fill(UNREACHABLE), false],
    [Array(5).fill(UNREACHABLE), true],
    [[...Array(4).fill(FAILURE), { type: "neither" }, FAILURE], true],
    [[...Array(20).fill({ type: "limited", retryAfterMs: 0 })], false],
    [[...Array(20).fill({ type: "neither" })], false],
    [[...Array(5).fill({ type: "busy" })], true],
  ];
  for (const [outcomes, opens] of cases) {
    const { admit, health, state } = clocked();
    for (const outcome of outcomes) health.report(admit(one), outcome);
    assertEquals(state(one.target), opens ? "open" : "closed", JSON.stringify(outcomes));
  }
});

Deno.test("failures count for thirty seconds, consecutive ones without limit", () => {
  const one = permitRequest(place("a"));
  const { health, send, pass, state } = clocked();
  const mixed = () => {
    send(one, 2, FAILURE);
    send(one, 1, SUCCESS);
  };
  mixed();
  mixed();
  mixed();
  pass(30_000);
  send(one, 1, FAILURE);
  assertEquals(state(one.target), "closed");
  assertEquals(health.snapshot().map(({ samples, failures }) => [samples, failures]), [[1, 1]]);
  pass(3_600_000);
  send(one, 3, FAILURE);
  assertEquals(state(one.target), "closed");
  pass(3_600_000);
  send(one, 1, FAILURE);
  assertEquals(state(one.target), "open");
});

Deno.test("a breaker opens for 5, 10 and 15 seconds, plus or minus a fifth, and for 5 again after a rest", () => {
  const one = permitRequest(place("a"));
  for (const [random, factor] of [[0, 0.8], [0.5, 1], [1 - Number.EPSILON, 1.2]] as const) {
    const { send, pass, health, changes } = clocked(() => random);
    const waits = () => Math.round(waitOf(health.acquirePermit(one))?.[1] ?? 0);
    const times = [5_000, 10_000, 15_000, 15_000].map((ms) => Math.round(ms * factor));
    send(one, 5, FAILURE);
    for (const ms of times) {
      assertEquals(waits(), ms);
      pass(ms + 1);
      send(one, 1, FAILURE);
    }
    pass(18_001);
    send(one, 1, SUCCESS);
    // Soon after, the backoff continues; after a rest it starts again.
    send(one, 5, FAILURE);
    assertEquals(waits(), Math.round(15_000 * factor));
    pass(18_001);
    send(one, 1, SUCCESS);
    pass(30_000);
    send(one, 5, FAILURE);
    assertEquals(waits(), Math.round(5_000 * factor));
    assertEquals(changes.filter(({ change }) => change === "closed").length, 2);
    assertEquals(changes.filter(({ change }) => change === "half_open").length, 6);
  }
});

Deno.test("a half-open breaker admits one request at a time, for at most thirty seconds", () => {
  const one = permitRequest(place("a"));
  const { send, pass, health, admit, state } = clocked();
  send(one, 5, FAILURE);
  pass(5_000);
  assertEquals(state(one.target), "half_open");
  const first = admit(one);
  assertEquals([first.isTrial, waitOf(health.acquirePermit(one))], [true, ["open", 30_000]]);
  // A neutral result frees the slot.
  health.report(first, { type: "neither" });
  const second = admit(one);
  pass(30_000);
  const third = admit(one);
  pass(30_000);
  const fourth = admit(one);
  assertEquals(health.acquirePermit(one).granted, false);
  // Overdue ones no longer open it again, but their success counts.
  health.report(second, FAILURE);
  assertEquals([state(one.target), health.acquirePermit(one).granted], ["half_open", false]);
  health.report(third, SUCCESS);
  assertEquals(state(one.target), "closed");
  const failures = () => health.snapshot()[0]?.failures;
  const before = failures();
  health.report(fourth, SUCCESS);
  assertEquals(failures(), before);
});

Deno.test("an early trial passes an open breaker, one at a time, and its failure does not extend the open time", () => {
  const one = permitRequest(place("a"));
  const early = { ...one, early: true };
  const { send, pass, health, admit, state } = clocked();
  send(one, 5, FAILURE);
  pass(1_000);
  assertEquals(waitOf(health.acquirePermit(one)), ["open", 4_000]);
  const trial = admit(early);
  assertEquals([trial.isTrial, waitOf(health.acquirePermit(early))], [true, ["open", 30_000]]);
  health.report(trial, FAILURE);
  assertEquals(waitOf(health.acquirePermit(one)), ["open", 4_000]);
  send(early, 1, SUCCESS);
  assertEquals(state(one.target), "closed");
});

Deno.test("results of requests that began before a breaker opened are ignored", () => {
  const one = permitRequest(place("a"));
  const { send, pass, health, admit, state } = clocked();
  const early = Array.from({ length: 30 }, () => admit(one));
  send(one, 5, UNREACHABLE);
  for (const pass of early.slice(0, 10)) health.report(pass, SUCCESS);
  assertEquals(state(one.target), "open");
  pass(5_000);
  send(one, 1, SUCCESS);
  for (const pass of early.slice(10)) health.report(pass, FAILURE);
  assertEquals(health.snapshot()[0]?.consecutive_failures, 0);
});

Deno.test("an answer that breaks off does not count as success between failures", () => {
  const one = permitRequest(place("a"));
  const { health, admit, send, state } = clocked();
  for (let request = 0; request < 5; request++) {
    assertEquals(state(one.target) ?? "closed", "closed");
    const stream = admit(one);
    health.report(stream, SUCCESS);
    health.report(stream, FAILURE);
  }
  assertEquals(state(one.target), "open");
  // One that ended well in between is.
  const other = permitRequest(place("b"));
  for (let request = 0; request < 4; request++) {
    const stream = admit(other);
    health.report(stream, SUCCESS);
    health.report(stream, FAILURE);
  }
  send(other, 12, SUCCESS);
  send(other, 4, FAILURE);
  assertEquals(state(other.target), "closed");
});

Deno.test("an answer that breaks off is one failed request, not a success and a failure", () => {
  const one = permitRequest(place("a"));
  const { health, admit, state } = clocked();
  for (const isBroken of [true, true, false, true, false, true, true, false, false, true]) {
    assertEquals(state(one.target) ?? "closed", "closed");
    const stream = admit(one);
    health.report(stream, SUCCESS);
    if (isBroken) health.report(stream, FAILURE);
  }
  const [row] = health.snapshot();
  assertEquals([row?.samples, row?.failures, row?.state], [10, 6, "open"]);
});

Deno.test("a trial that closed the breaker counts as failed if its answer breaks off", () => {
  const one = permitRequest(place("a"));
  const { health, admit, send, pass } = clocked();
  send(one, 5, UNREACHABLE);
  pass(5_000);
  const trial = admit(one);
  health.report(trial, SUCCESS);
  health.report(trial, FAILURE);
  const [row] = health.snapshot();
  assertEquals([row?.samples, row?.failures, row?.consecutive_failures, row?.state], [1, 1, 1, "closed"]);
  send(one, 4, FAILURE);
  assertEquals(health.snapshot()[0]?.state, "open");
});

Deno.test("failures of one client key open the target's breaker for that key only", () => {
  const target = permitRequest(place("a"), place("b"));
  const { health, send, state, changes, pass } = clocked();
  send(by("bad", target), 5, FAILURE);
  assertEquals(waitOf(health.acquirePermit(by("bad", target))), ["open", 5_000]);
  assertEquals(changes.at(-1), {
    upstream: "a",
    model: "m",
    change: "opened",
    scope: "client_key",
    key: "bad",
    forMs: 5_000,
  });
  const [row] = health.snapshot();
  assertEquals([row?.state, row?.keys], ["open", 1]);
  send(by("good", target), 100, SUCCESS);
  // This holds however often this key fails and however rarely others send requests.
  for (let round = 0; round < 50; round++) {
    pass(20_000);
    send(by("bad", target), 1, FAILURE);
    send(by("good", target), 1, SUCCESS);
  }
  assertEquals(health.acquirePermit(by("good", target)).granted, true);
  assertEquals(state(target.target), "open");
});

Deno.test("failures open the breaker for all keys if they would without any single key", () => {
  const one = permitRequest(place("a"));
  const cases: [counts: Record<string, number>, opens: boolean][] = [
    [{ k1: 4, k2: 4 }, false],
    [{ k1: 4, k2: 4, k3: 1 }, true],
    [{ k1: 4, k2: 1, k3: 1, k4: 1, k5: 1 }, false],
    [{ k1: 4, k2: 1, k3: 1, k4: 1, k5: 1, k6: 1 }, true],
    [Object.fromEntries(Array.from({ length: 6 }, (_, index) => [`k${index}`, 1])), true],
    [Object.fromEntries(Array.from({ length: 5 }, (_, index) => [`k${index}`, 1])), false],
  ];
  for (const [counts, opens] of cases) {
    const { send, changes } = clocked();
    for (const [key, count] of Object.entries(counts)) send(by(key, one), count, FAILURE);
    assertEquals(changes.some(({ scope }) => scope === "model"), opens, JSON.stringify(counts));
  }
  // By the share of failures: that of k1 is worse, that of k2 decides.
  const { send, changes } = clocked();
  const isOut = () => changes.some(({ scope }) => scope === "model");
  for (let round = 0; round < 4; round++) {
    send(by("k1", one), 2, FAILURE);
    send(by("k2", one), 1, FAILURE);
    send(by("k2", one), 1, SUCCESS);
  }
  send(by("k2", one), 1, FAILURE);
  assertEquals(isOut(), false);
  send(by("k2", one), 1, FAILURE);
  assertEquals(isOut(), true);
});

Deno.test("keys that fail together cannot take the target from a key without failures", () => {
  const one = permitRequest(place("a"));
  const { health, send, pass, state } = clocked();
  const attack = () => {
    for (let time = 0; time < 5; time++) {
      for (const key of ["k1", "k2"]) {
        const admission = health.acquirePermit(by(key, one));
        if (admission.granted) health.report(admission.permit, FAILURE);
      }
    }
  };
  for (let round = 0; round < 20; round++) {
    attack();
    // Only the first request of several at once is a trial; the others wait no longer than the open time.
    const admission = health.acquirePermit(by("good", one));
    assert(admission.granted, `round ${round}: ${JSON.stringify(admission)}`);
    const [, waitMs = 0] = waitOf(health.acquirePermit(by("good", one))) ?? [];
    assert(waitMs <= 15_000, String(waitMs));
    health.report(admission.permit, SUCCESS);
    send(by("good", one), 1, SUCCESS);
    pass(1_000);
  }
  assertEquals(health.acquirePermit(by("k1", one)).granted, false);
  assertEquals(state(one.target), "open");
});

Deno.test("a failed trial of a key without failures keeps the breaker open for all keys", () => {
  const one = permitRequest(place("a"));
  const { health, send, pass } = clocked();
  for (let number = 0; number < 6; number++) send(by(`k${number}`, one), 1, FAILURE);
  assertEquals(waitOf(health.acquirePermit(by("k1", one))), ["open", 5_000]);
  send(by("first", one), 1, FAILURE);
  assertEquals(waitOf(health.acquirePermit(by("second", one))), ["open", 5_000]);
  pass(5_000);
  send(by("second", one), 1, SUCCESS);
  // Closed and opened again, it may be the keys' fault again.
  for (let number = 0; number < 6; number++) send(by(`k${number}`, one), 1, FAILURE);
  assertEquals(waitOf(health.acquirePermit(by("k1", one))), ["open", 10_000]);
  assertEquals(health.acquirePermit(by("third", one)).granted, true);
});

Deno.test("of two keys with equally many failures the one with fewer requests is the worse", () => {
  const one = permitRequest(place("a"));
  const { health, send } = clocked();
  for (let round = 0; round < 4; round++) {
    send(by("half", one), 1, FAILURE);
    send(by("all", one), 1, FAILURE);
    send(by("half", one), 1, SUCCESS);
  }
  for (let round = 0; round < 2; round++) {
    send(by("few", one), 3, SUCCESS);
    send(by("few", one), 1, FAILURE);
  }
  // Without "all" 6 of 16 requests failed. Without "half" 6 of 12 did, which would open the breaker.
  assertEquals(health.acquirePermit(by("other", one)).granted, true);
});

Deno.test("a key with a failed trial does not get the next one while another key waits", () => {
  const one = permitRequest(place("a"));
  const { health, send, pass, admit } = clocked();
  send(by("slow", one), 5, UNREACHABLE);
  pass(5_000);
  const slow = admit(by("slow", one));
  assertEquals(waitOf(health.acquirePermit(by("good", one))), ["open", 30_000]);
  pass(30_000);
  assertEquals(waitOf(health.acquirePermit(by("slow", one))), ["open", 5_000]);
  assertEquals(waitOf(health.acquirePermit({ ...by("slow", one), early: true })), ["open", 5_000]);
  // The other key sends nothing: the first one may continue.
  pass(5_000);
  health.report(slow, { type: "neither" });
  const again = admit(by("slow", one));
  assertEquals(health.acquirePermit(by("good", one)).granted, false);
  health.report(again, UNREACHABLE);
  // It sends a request: its turn remains even if the breaker has opened again.
  pass(10_000);
  assertEquals(waitOf(health.acquirePermit(by("slow", one))), ["open", 5_000]);
  send(by("good", one), 1, SUCCESS);
  // Once the breaker has closed, all keys are treated alike.
  send(by("good", one), 5, UNREACHABLE);
  assertEquals(health.acquirePermit(by("slow", one)).granted, false);
  pass(15_000);
  const trial = admit(by("slow", one));
  assertEquals(health.acquirePermit(by("good", one)).granted, false);
  health.report(trial, { type: "neither" });
  health.report(admit(by("good", one)), { type: "neither" });
  // No other key has sent a request since the latest trial began.
  assertEquals(health.acquirePermit(by("good", one)).granted, true);
});

Deno.test("a key that alone is refused gets the next trial without another wait", () => {
  const one = permitRequest(place("a"));
  const { health, send, pass, admit } = clocked();
  send(one, 5, UNREACHABLE);
  pass(5_000);
  const trial = admit(one);
  assertEquals(waitOf(health.acquirePermit(one)), ["open", 30_000]);
  health.report(trial, { type: "neither" });
  assertEquals(waitOf(health.acquirePermit(one)), undefined);
});

Deno.test("a dead target is tried at most twice per open period, and once by a single key", () => {
  for (
    const [count, outcome, most] of [[1, FAILURE, 1], [1, UNREACHABLE, 1], [2, FAILURE, 2], [20, FAILURE, 2]] as const
  ) {
    const one = permitRequest(place("a"));
    const { health, send, pass, state } = clocked();
    const keys = Array.from({ length: count }, (_, number) => `k${number}`);
    send(one, 5, UNREACHABLE);
    let trials = 0;
    for (let ms = 0; ms < 600_000; ms += 100) {
      for (const key of keys) {
        const admission = health.acquirePermit(by(key, one));
        if (!admission.granted) continue;
        trials++;
        health.report(admission.permit, outcome);
      }
      pass(100);
    }
    // Periods of 5, 10 and then 15 s.
    assert(trials >= 30 && trials <= 43 * most, `${count} keys, ${outcome.type}: ${trials} trials`);
    // It recovers.
    pass(20_000);
    send(by("k0", one), 1, SUCCESS);
    pass(20_000);
    for (const key of keys) send(by(key, one), 1, SUCCESS);
    assertEquals(state(one.target), "closed");
  }
});

Deno.test("a failed trial opens the breaker for all keys after a failed probe", async () => {
  for (const answer of ["up", "down"] as const) {
    const one = permitRequest(place("a"));
    const { health, send, pass, answers } = clocked();
    answers.a = answer;
    send(one, 5, UNREACHABLE);
    pass(5_000);
    await settle();
    send(by("k1", one), 1, FAILURE);
    assertEquals(waitOf(health.acquirePermit(by("k2", one))), answer === "up" ? undefined : ["open", 10_000], answer);
  }
});

Deno.test("a failed connection concerns all keys", () => {
  const one = permitRequest(place("a"));
  const { health, send } = clocked();
  send(one, 5, UNREACHABLE);
  assertEquals(health.acquirePermit(by("other", one)).granted, false);
});

Deno.test("TargetHealth tracks a limited number of client keys", () => {
  const one = permitRequest(place("a"));
  const { health, send } = clocked();
  for (let number = 0; number < 1_000; number++) {
    send(by(`k${number}`, one), 1, FAILURE);
    send(by(`k${number}`, one), 2, SUCCESS);
  }
  send(by("last", one), 5, FAILURE);
  assertEquals([health.acquirePermit(by("last", one)).granted, health.acquirePermit(by("k1", one)).granted], [
    false,
    true,
  ]);
});

Deno.test("a half-open target is first in the plan only after a successful probe", async () => {
  const { health, send, pass, answers, probed, admit } = clocked();
  const [a, b] = [permitRequest(place("a"), place("b")), permitRequest(place("b"))];
  answers.a = "down";
  send(a, 5, FAILURE);
  assertEquals(health.isUp(a.target, "k1"), false);
  pass(5_000);
  await settle();
  // It may be used if no other target is left.
  assertEquals([health.isUp(a.target, "k1"), health.unavailability(a.target, "k1"), probed], [false, undefined, ["a"]]);
  pass(5_000);
  answers.a = "up";
  await settle();
  assertEquals([health.isUp(a.target, "k1"), probed], [false, ["a", "a"]]);
  pass(5_000);
  await settle();
  assertEquals([health.isUp(a.target, "k1"), probed], [true, ["a", "a", "a"]]);
  const trial = admit(a);
  assertEquals([trial.isTrial, health.isUp(a.target, "k1"), health.isUp(b.target, "k1")], [true, false, true]);
  health.report(trial, FAILURE);
  pass(9_999);
  assertEquals(health.isUp(a.target, "k1"), false);
  health.close();
  pass(60_000);
  await settle();
  assertEquals(probed.length, 3);
});

Deno.test("a closed tracker starts no timer, also after a probe that was under way", async () => {
  const { health, send, pass, answers, probed, timers } = clocked();
  const a = permitRequest(place("a"));
  answers.a = "down";
  send(a, 5, FAILURE);
  pass(5_000);
  assertEquals([probed, timers()], [["a"], 0]);
  health.close();
  await settle();
  assertEquals(timers(), 0);
  send(permitRequest(place("b")), 5, FAILURE);
  assertEquals(timers(), 0);
});

Deno.test("a limit of one model does not affect other models of its upstream", () => {
  const [one, other] = [permitRequest(place("a", "m")), permitRequest(place("a", "n"))];
  const { send, pass, health, state } = clocked();
  send(one, 1, { type: "limited", retryAfterMs: 7_000 });
  assertEquals(waitOf(health.acquirePermit(one)), ["cooling", 7_000]);
  assertEquals(health.acquirePermit(other).granted, true);
  pass(7_000);
  assertEquals([state(one.target), health.acquirePermit(one).granted], ["closed", true]);
  // An upstream's request to wait an hour is capped.
  send(one, 1, { type: "limited", retryAfterMs: 3_600_000 });
  assertEquals(waitOf(health.acquirePermit(one)), ["cooling", 60_000]);
});

Deno.test("a limit met by one key applies to all once another key meets it", () => {
  const one = permitRequest(place("a"));
  const { health, send, pass } = clocked();
  send(by("k1", one), 1, { type: "limited", retryAfterMs: 30_000 });
  assertEquals(waitOf(health.acquirePermit(by("k1", one))), ["cooling", 30_000]);
  assertEquals(health.acquirePermit(by("k2", one)).granted, true);
  send(by("k2", one), 1, { type: "limited", retryAfterMs: 3_000 });
  assertEquals(waitOf(health.acquirePermit(by("k3", one))), ["cooling", 3_000]);
  pass(3_000);
  assertEquals(health.acquirePermit(by("k3", one)).granted, true);
});

Deno.test("a refused request opens nothing unless a probe finds the gateway's key refused", async () => {
  const [one, other] = [permitRequest(place("a", "m"), place("b")), permitRequest(place("a", "n"))];
  for (const answer of [undefined, "up", "down"] as const) {
    const { send, health, answers, probed, pass } = clocked();
    if (answer !== undefined) answers.a = answer;
    for (let round = 0; round < 20; round++) {
      send(one, 1, { type: "refused" });
      await settle();
      assertEquals([health.acquirePermit(one).granted, health.acquirePermit(other).granted], [true, true], answer);
      pass(1_000);
    }
    // Requests cause a probe every five seconds at most.
    assertEquals(probed.length, answer === undefined ? 0 : 4);
  }
});

Deno.test("an upstream with a refused key is out until a probe finds the key accepted", async () => {
  const [one, other] = [permitRequest(place("a", "m"), place("b")), permitRequest(place("a", "n"))];
  const { send, pass, health, state, changes, answers, probed } = clocked();
  health.acquirePermit(other);
  answers.a = "refused";
  send(one, 1, { type: "refused" });
  send(one, 1, { type: "refused" });
  assertEquals(health.acquirePermit(one).granted, true);
  await settle();
  assertEquals(waitOf(health.acquirePermit(by("k2", one))), ["quarantined", 15_000]);
  assertEquals([state(one.target), state(other.target), probed.length], ["quarantined", "quarantined", 1]);
  for (const seconds of [15, 30, 60, 120, 240, 300, 300]) {
    assertEquals(waitOf(health.acquirePermit(other))?.[1], seconds * 1_000);
    pass(seconds * 1_000);
    await settle();
  }
  answers.a = "down";
  pass(300_000);
  await settle();
  assertEquals(state(one.target), "quarantined");
  answers.a = "up";
  pass(300_000);
  await settle();
  assertEquals([state(one.target), state(other.target)], ["closed", "closed"]);
  assertEquals(changes.map(({ change, scope }) => `${change} ${scope}`), [
    "key_refused upstream",
    "key_accepted upstream",
  ]);
});

Deno.test("a refused key is not reported as accepted if a reload removes its upstream", async () => {
  const [one, other] = [permitRequest(place("a")), permitRequest(place("b"))];
  const { send, health, changes, answers, timers } = clocked();
  answers.a = "refused";
  send(one, 1, { type: "refused" });
  await settle();
  health.reconfigure({ breaker: BREAKER, models: [other.model], probe: () => undefined });
  assertEquals(changes.map(({ change, isRemoved }) => [change, isRemoved]), [
    ["key_refused", undefined],
    ["key_accepted", true],
  ]);
  assertEquals([timers(), health.snapshot()], [0, []]);
});

Deno.test("requests that end after a reload has removed their target change nothing", async () => {
  const [one, other] = [permitRequest(place("a")), permitRequest(place("b"))];
  const { admit, send, health, state, changes, answers, probed, timers } = clocked();
  answers.a = "refused";
  const permits = Array.from({ length: 6 }, () => admit(one));
  health.reconfigure({ breaker: BREAKER, models: [other.model] });
  for (const [index, permit] of permits.entries()) health.report(permit, index < 5 ? UNREACHABLE : { type: "refused" });
  await settle();
  assertEquals([changes, probed, timers()], [[], [], 0]);
  // The next reload may bring it back.
  health.reconfigure({ breaker: BREAKER, models: [one.model, other.model] });
  send(one, 5, UNREACHABLE);
  assertEquals(state(one.target), "open");
});

Deno.test("failures make at most half of a model's targets unavailable, refused keys any number", async () => {
  const names = ["a", "b", "c", "d", "e"];
  for (let count = 1; count <= names.length; count++) {
    const places = names.slice(0, count).map((name) => place(name));
    const { health, send, state, answers } = clocked();
    const model = { id: "acme/one", targets: places };
    const key = "k1";
    const isAway = (target: TargetKey) => health.unavailability(target, key) !== undefined;
    for (const target of places) {
      for (let time = 0; time < 20 && !isAway(target); time++) send({ model, target, key }, 1, FAILURE);
    }
    const open = places.filter((target) => state(target) === "open").length;
    assertEquals(open, Math.max(1, Math.floor(count / 2)), `${count} targets`);
    for (const target of places) {
      answers[target.upstream] = "refused";
      if (!isAway(target)) send({ model, target, key }, 1, { type: "refused" });
    }
    await settle();
    assertEquals(places.filter((target) => !isAway(target)).length, 0);
  }
});

Deno.test("speed is measured over the last five minutes", () => {
  const one = place("a");
  const { health, pass } = clocked();
  assertEquals(health.speed(one).firstMs(0.5), undefined);
  for (let ms = 100; ms <= 1_000; ms += 100) health.recordSpeed(one, { firstMs: ms, tokensPerSecond: ms / 10 });
  const { firstMs, tokensPerSecond } = health.speed(one);
  assertEquals([firstMs(0.5), firstMs(0.9), firstMs(0.99)], [500, 900, 1_000]);
  // Nine of ten reach twenty tokens per second.
  assertEquals([tokensPerSecond(0.5), tokensPerSecond(0.9), tokensPerSecond(0.99)], [60, 20, 10]);
  assertEquals([health.snapshot()[0]?.first_ms, health.snapshot()[0]?.tokens_per_second], [500, 50]);
  for (let time = 0; time < 1_000; time++) health.recordSpeed(one, { firstMs: 7 });
  assertEquals(health.speed(one).firstMs(0.99), 7);
  pass(300_000);
  assertEquals(health.speed(one).firstMs(0.5), undefined);
  health.recordSpeed(one, { firstMs: NaN });
  assertEquals(health.speed(one).firstMs(0.5), undefined);
});

Deno.test("the snapshot contains times in Unix milliseconds", () => {
  const one = permitRequest(place("a"));
  const { health, send } = clocked();
  send(one, 5, UNREACHABLE);
  assertEquals(health.snapshot(), [{
    upstream: "a",
    model: "m",
    state: "open",
    awaits_trial: true,
    until: 1_005_000,
    failures: 5,
    samples: 5,
    consecutive_failures: 5,
    recent_attempts: 5,
    recent_answers: 0,
  }]);
});

Deno.test("an open breaker waits for a trial of any key; one of a single key, for another key's success", () => {
  const one = permitRequest(place("a"));
  const { health, send, pass, state } = clocked();
  const awaits = () => health.snapshot().map(({ awaits_trial }) => awaits_trial);
  send(one, 4, FAILURE);
  assertEquals(awaits(), [false]);
  send(one, 1, FAILURE);
  pass(3_600_000);
  assertEquals([awaits(), state(one.target)], [[true], "half_open"]);
  send(by("k2", one), 1, SUCCESS);
  assertEquals([awaits(), state(one.target)], [[false], "half_open"]);
});

Deno.test("changed settings apply to later results, and targets of the configuration keep their state", () => {
  const [one, other, removed] = [permitRequest(place("a")), permitRequest(place("b")), permitRequest(place("c"))];
  const { health, admit, send, pass, state, changes } = clocked();
  const permit = admit(removed);
  send(one, 5, FAILURE);
  send(removed, 5, UNREACHABLE);
  const breaker = { ...BREAKER, consecutiveFailures: 2, windowMs: 60_000 };
  changes.length = 0;
  health.reconfigure({ breaker, models: [one.model, other.model] });
  const { key: _, ...end } = { ...changes[0], key: undefined };
  assertEquals([changes.length, end], [
    1,
    { upstream: "c", model: "m", change: "closed", scope: "model", forMs: 0, isRemoved: true },
  ]);
  assertEquals(state(one.target), "open");
  send(other, 2, FAILURE);
  assertEquals(state(other.target), "open");
  health.report(permit, FAILURE);
  changes.length = 0;
  pass(60_000);
  assertEquals(changes.map(({ change, upstream }) => `${change} ${upstream}`), ["half_open a", "half_open b"]);
  assertEquals(state(removed.target), undefined);
  send({ ...removed, target: place("c") }, 1, SUCCESS);
});
