import { assert, assertEquals } from "@std/assert";
import type { Admission, Asked, Health, HealthChange, Outcome, Pass, Place } from "../../lib/routing/health.ts";
import { createHealth } from "../../lib/routing/memory_health.ts";
import { seeded } from "../random.ts";
import { BREAKER } from "./breaker.ts";
import { ReferenceHealth, type ReferencePass } from "./health_reference.ts";

const SUCCESS: Outcome = { type: "success" };
const FAILURE: Outcome = { type: "failure" };
const UNREACHABLE: Outcome = { type: "unreachable" };

/** Health with a clock of its own. */
interface Clocked {
  health: Health;
  changes: HealthChange[];
  pass(ms: number): void;
  /** Lets a request through that must be let through. */
  admit(asked: Asked): Pass;
  /** Sends requests, one after another, of one outcome. */
  send(asked: Asked, times: number, outcome: Outcome): void;
  state(place: Place): string | undefined;
}

function clocked(random = () => 0.5): Clocked {
  let now = 0;
  const changes: HealthChange[] = [];
  const health = createHealth({
    breaker: BREAKER,
    monotonic: () => now,
    now: () => 1_000_000 + now,
    random,
    changed: (change) => changes.push(change),
  });
  const self: Clocked = {
    health,
    changes,
    pass: (ms) => void (now += ms),
    admit(asked) {
      const admission = health.admit(asked);
      assert(admission.admitted, JSON.stringify(admission));
      return admission.pass;
    },
    send(asked, times, outcome) {
      for (let time = 0; time < times; time++) health.report(self.admit(asked), outcome);
    },
    state: ({ upstream, model }) =>
      health.snapshot().find((row) => row.upstream === upstream && row.model === model)?.state,
  };
  return self;
}

function place(upstream: string, model = "m"): Place {
  return { upstream, model };
}

/** A model and its targets; the first of them is asked. */
function asked(first: Place, ...others: Place[]): Asked {
  return { model: { id: `acme/${first.model}`, targets: [first, ...others] }, target: first };
}

function waitOf(admission: Admission): [string, number] | undefined {
  return admission.admitted ? undefined : [admission.why, admission.waitMs];
}

Deno.test("health does what the reference does, over 10,000 histories", () => {
  const places = [place("a"), place("b"), place("a", "n"), place("c"), place("d")];
  const [a, b, an, c, d] = places as [Place, Place, Place, Place, Place];
  const models: Asked["model"][] = [
    { id: "acme/one", targets: [a] },
    { id: "acme/two", targets: [a, b] },
    { id: "acme/many", targets: [an, b, c, d] },
  ];
  const outcomes: Outcome[] = [
    SUCCESS,
    { type: "limited", retryAfterMs: 2_500 },
    { type: "limited" },
    { type: "limited", retryAfterMs: 3_000_000 },
    { type: "busy" },
    { type: "busy", retryAfterMs: 700 },
    { type: "refused", scope: "upstream" },
    { type: "refused", scope: "model" },
    { type: "neither" },
  ];
  const reached = new Set<string>();
  for (let seed = 0; seed < 10_000; seed++) {
    const random = seeded(seed);
    const reference = new ReferenceHealth();
    const health = createHealth({ breaker: BREAKER, monotonic: () => reference.now, now: () => 0, random: () => 0.5 });
    const open: [Pass, ReferencePass][] = [];
    // Most histories are of failures, so that breakers move.
    const failing = random.next();
    for (let step = 0; step < 60; step++) {
      const roll = random.next();
      if (roll < 0.15) reference.now += random.chance(0.7) ? random.next() * 2_000 : random.next() * 70_000;
      else if (roll < 0.6 || open.length === 0) {
        const model = random.pick(random.chance(0.5) ? models.slice(0, 1) : models);
        const target = random.pick(model.targets);
        const given = health.admit({ model, target });
        const expected = reference.admit({ model, target });
        assertEquals(
          waitOf(given),
          "pass" in expected ? undefined : [expected.why, expected.waitMs],
          `seed ${seed}, step ${step}`,
        );
        if (given.admitted && "pass" in expected) open.push([given.pass, expected.pass]);
        if (!given.admitted) reached.add(`${given.why} refuses`);
      } else {
        const at = random.below(open.length);
        const [[pass, referencePass] = []] = open.splice(at, 1);
        assert(pass !== undefined && referencePass !== undefined);
        const outcome = random.chance(failing) ? random.pick([FAILURE, UNREACHABLE]) : random.pick(outcomes);
        health.report(pass, outcome);
        reference.report(referencePass, outcome);
      }
      for (const row of health.snapshot()) {
        const { upstream, model, state, samples, failures } = row;
        assertEquals({ state, samples, failures }, reference.state({ upstream, model }), `seed ${seed}, step ${step}`);
        reached.add(state);
      }
      for (const { targets } of models) {
        const most = Math.max(1, Math.floor(targets.length / 2));
        // A target whose key was accepted again may be one more.
        if (!reached.has("quarantined")) assert(reference.out(targets).length <= most, `seed ${seed}, step ${step}`);
      }
    }
  }
  assertEquals([...reached].sort(), [
    "closed",
    "cooling",
    "cooling refuses",
    "half_open",
    "open",
    "open refuses",
    "quarantined",
    "quarantined refuses",
  ]);
});

Deno.test("a breaker opens at ten requests of which half fail, not before", () => {
  const one = asked(place("a"));
  const cases: [outcomes: Outcome[], opens: boolean][] = [
    [Array(9).fill(FAILURE), false],
    [Array(10).fill(FAILURE), true],
    [[...Array(5).fill(SUCCESS), ...Array(5).fill(FAILURE)], true],
    [[...Array(6).fill(SUCCESS), ...Array(5).fill(FAILURE)], false],
    [[...Array(6).fill(SUCCESS), ...Array(6).fill(FAILURE)], true],
    [Array(4).fill(UNREACHABLE), false],
    [Array(5).fill(UNREACHABLE), true],
    [[...Array(4).fill(UNREACHABLE), FAILURE, ...Array(4).fill(UNREACHABLE)], false],
    [[...Array(20).fill({ type: "limited", retryAfterMs: 0 })], false],
    [[...Array(20).fill({ type: "neither" })], false],
    [[...Array(10).fill({ type: "busy" })], true],
  ];
  for (const [outcomes, opens] of cases) {
    const { admit, health, state } = clocked();
    for (const outcome of outcomes) health.report(admit(one), outcome);
    assertEquals(state(one.target), opens ? "open" : "closed", JSON.stringify(outcomes));
  }
});

Deno.test("failures count for thirty seconds", () => {
  const one = asked(place("a"));
  const { send, pass, state } = clocked();
  send(one, 9, FAILURE);
  pass(30_000);
  send(one, 1, FAILURE);
  assertEquals(state(one.target), "closed");
  pass(10_000);
  send(one, 9, FAILURE);
  assertEquals(state(one.target), "open");
});

Deno.test("a breaker opens for 5, 10 and 15 seconds, give or take a fifth, and for 5 again after a rest", () => {
  const one = asked(place("a"));
  for (const [random, factor] of [[0, 0.8], [0.5, 1], [1 - Number.EPSILON, 1.2]] as const) {
    const { send, pass, health, changes } = clocked(() => random);
    const waits = () => Math.round(waitOf(health.admit(one))?.[1] ?? 0);
    const times = [5_000, 10_000, 15_000, 15_000].map((ms) => Math.round(ms * factor));
    send(one, 10, FAILURE);
    for (const ms of times) {
      assertEquals(waits(), ms);
      pass(ms + 1);
      send(one, 1, FAILURE);
    }
    pass(18_001);
    send(one, 1, SUCCESS);
    // Soon again: it goes on where it was. After a rest it begins anew.
    send(one, 1, FAILURE);
    send(one, 8, FAILURE);
    assertEquals(waits(), Math.round(15_000 * factor));
    pass(18_001);
    send(one, 1, SUCCESS);
    pass(30_000);
    send(one, 10, FAILURE);
    assertEquals(waits(), Math.round(5_000 * factor));
    assertEquals(changes.filter(({ change }) => change === "closed").length, 2);
  }
});

Deno.test("a breaker that is half open lets one request through at a time, for thirty seconds at most", () => {
  const one = asked(place("a"));
  const { send, pass, health, admit, state } = clocked();
  send(one, 10, FAILURE);
  pass(5_000);
  assertEquals(state(one.target), "half_open");
  const first = admit(one);
  assertEquals(waitOf(health.admit(one)), ["open", 30_000]);
  // One that says nothing makes room.
  health.report(first, { type: "neither" });
  const second = admit(one);
  pass(30_000);
  const third = admit(one);
  assertEquals(health.admit(one).admitted, false);
  // The one that is overdue no longer opens it again, but a good end is a good end.
  health.report(second, FAILURE);
  assertEquals([state(one.target), health.admit(one).admitted], ["half_open", false]);
  health.report(second, SUCCESS);
  assertEquals(state(one.target), "closed");
  health.report(third, FAILURE);
  assertEquals(health.snapshot()[0]?.failures, 0);
});

Deno.test("what began before a breaker opened no longer counts", () => {
  const one = asked(place("a"));
  const { send, pass, health, admit, state } = clocked();
  const early = Array.from({ length: 30 }, () => admit(one));
  send(one, 10, FAILURE);
  for (const pass of early.slice(0, 10)) health.report(pass, SUCCESS);
  assertEquals(state(one.target), "open");
  pass(5_000);
  send(one, 1, SUCCESS);
  for (const pass of early.slice(10)) health.report(pass, FAILURE);
  assertEquals(state(one.target), "closed");
});

Deno.test("the limit of one model leaves the others of its upstream alone", () => {
  const [one, other] = [asked(place("a", "m")), asked(place("a", "n"))];
  const { send, pass, health, state } = clocked();
  send(one, 1, { type: "limited", retryAfterMs: 7_000 });
  assertEquals(waitOf(health.admit(one)), ["cooling", 7_000]);
  assertEquals(health.admit(other).admitted, true);
  pass(7_000);
  assertEquals([state(one.target), health.admit(one).admitted], ["closed", true]);
  // Nobody is believed to be away for an hour.
  send(one, 1, { type: "limited", retryAfterMs: 3_600_000 });
  assertEquals(waitOf(health.admit(one)), ["cooling", 60_000]);
});

Deno.test("a key that is refused takes all models of its upstream out, for longer each time, until it is accepted", () => {
  const [one, other] = [asked(place("a", "m"), place("b")), asked(place("a", "n"))];
  const { send, pass, health, state, changes, admit } = clocked();
  const early = admit(one);
  health.admit(other);
  send(one, 1, { type: "refused", scope: "upstream" });
  health.report(early, { type: "refused", scope: "upstream" });
  assertEquals(waitOf(health.admit(one)), ["quarantined", 60_000]);
  assertEquals([state(one.target), state(other.target)], ["quarantined", "quarantined"]);
  for (const minutes of [1, 2, 4, 8, 16, 32, 60, 60]) {
    const [, waitMs] = waitOf(health.admit(other)) ?? [];
    assertEquals(waitMs, minutes * 60_000);
    pass(minutes * 60_000);
    send(other, 1, { type: "refused", scope: "upstream" });
  }
  pass(3_600_000);
  const trial = admit(one);
  assertEquals(waitOf(health.admit(other)), ["quarantined", 30_000]);
  health.report(trial, SUCCESS);
  assertEquals([state(one.target), state(other.target)], ["closed", "closed"]);
  assertEquals(changes.at(-1), { upstream: "a", model: "m", change: "key_accepted", scope: "upstream", forMs: 0 });
  assertEquals(changes.filter(({ change }) => change === "key_refused").length, 9);
  send(one, 1, { type: "refused", scope: "upstream" });
  assertEquals(waitOf(health.admit(one)), ["quarantined", 60_000]);
});

Deno.test("a key that may not use one model takes only that model out", () => {
  const [one, other] = [asked(place("a", "m")), asked(place("a", "n"))];
  const { send, health } = clocked();
  send(one, 1, { type: "refused", scope: "model" });
  assertEquals(waitOf(health.admit(one)), ["quarantined", 60_000]);
  assertEquals(health.admit(other).admitted, true);
});

Deno.test("failures take out at most half of a model's targets, refused keys any number", () => {
  const names = ["a", "b", "c", "d", "e"];
  for (let count = 1; count <= names.length; count++) {
    const places = names.slice(0, count).map((name) => place(name));
    const { health, send, state } = clocked();
    const model = { id: "acme/one", targets: places };
    for (const target of places) {
      for (let time = 0; time < 20 && health.away(target) === undefined; time++) send({ model, target }, 1, FAILURE);
    }
    const open = places.filter((target) => state(target) === "open").length;
    assertEquals(open, Math.max(1, Math.floor(count / 2)), `${count} targets`);
    for (const target of places) {
      if (health.away(target) === undefined) send({ model, target }, 1, { type: "refused", scope: "upstream" });
    }
    assertEquals(places.filter((target) => health.away(target) === undefined).length, 0);
  }
});

Deno.test("speed is what was measured within the last five minutes", () => {
  const one = place("a");
  const { health, pass } = clocked();
  assertEquals(health.speed(one).firstMs(0.5), undefined);
  for (let ms = 100; ms <= 1_000; ms += 100) health.measure(one, { firstMs: ms, tokensPerSecond: ms / 10 });
  const { firstMs, tokensPerSecond } = health.speed(one);
  assertEquals([firstMs(0.5), firstMs(0.9), firstMs(0.99)], [500, 900, 1_000]);
  // Nine of ten reach twenty tokens per second.
  assertEquals([tokensPerSecond(0.5), tokensPerSecond(0.9), tokensPerSecond(0.99)], [60, 20, 10]);
  assertEquals([health.snapshot()[0]?.first_ms, health.snapshot()[0]?.tokens_per_second], [500, 50]);
  for (let time = 0; time < 1_000; time++) health.measure(one, { firstMs: 7 });
  assertEquals(health.speed(one).firstMs(0.99), 7);
  pass(300_000);
  assertEquals(health.speed(one).firstMs(0.5), undefined);
  health.measure(one, { firstMs: NaN });
  assertEquals(health.speed(one).firstMs(0.5), undefined);
});

Deno.test("the snapshot tells until when, in Unix time", () => {
  const one = asked(place("a"));
  const { health, send } = clocked();
  send(one, 10, FAILURE);
  assertEquals(health.snapshot(), [{
    upstream: "a",
    model: "m",
    state: "open",
    until: 1_005_000,
    failures: 10,
    samples: 10,
  }]);
});

Deno.test("other numbers are taken for what comes; what is known of targets stays", () => {
  const one = asked(place("a"));
  const { health, send, state } = clocked();
  send(one, 1, { type: "refused", scope: "model" });
  health.obey({ ...BREAKER, leastSamples: 2, windowMs: 60_000 });
  assertEquals(state(one.target), "quarantined");
  const other = asked(place("b"));
  send(other, 2, FAILURE);
  assertEquals(state(other.target), "open");
});
