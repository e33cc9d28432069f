import { assert, assertEquals, assertRejects } from "@std/assert";
import { type Model, modelSchema } from "../../lib/catalog/model.ts";
import { type ErrorKind, type ErrorOptions, GatewayError } from "../../lib/errors.ts";
import type { Health } from "../../lib/routing/health.ts";
import { HealthTracker } from "../../lib/routing/health_tracker.ts";
import type { Choice } from "../../lib/routing/plan.ts";
import { type Attempt, type AttemptOptions, backoffMs, TargetAttempts } from "../../lib/routing/retry.ts";
import { RetryBudget } from "../../lib/routing/target_statistics.ts";
import { seeded } from "../support/random.ts";
import { skipInQuick } from "../support/skip.ts";
import { BREAKER } from "./breaker.ts";
import { VirtualTime } from "./virtual_time.ts";

/** A model with a target at each of these upstreams. */
function model(id: string, ...upstreams: string[]): Model {
  const targets = upstreams.map((upstream) => ({ upstream, model: id }));
  return modelSchema.parse({ id: `acme/${id}`, created: 1, context_length: 1, pricing: FREE, targets });
}

const FREE = { prompt: "0", completion: "0" };

function choicesOf(...models: Model[]): Choice[] {
  return models.flatMap((model) => model.targets.map((target): Choice => ({ model, target })));
}

function error(kind: ErrorKind, options: ErrorOptions = {}): GatewayError {
  return new GatewayError(kind, kind, options);
}

/** An upstream's reaction to a request: no error is an answer. */
type Script = (time: VirtualTime) => GatewayError | undefined | Promise<GatewayError | undefined>;

/** Upstreams by name, and a record of their calls with times. */
interface World {
  time: VirtualTime;
  health: Health;
  sentTo: [upstream: string, at: number][];
  scripts: Record<string, Script>;
  /** Sends a request. Resolves with the name of the upstream that answered. */
  send(choices: readonly Choice[], more?: Partial<AttemptOptions<string>>): Promise<string>;
}

function world(scripts: Record<string, Script>, { next: random } = seeded(1)): World {
  const time = new VirtualTime();
  const monotonic = () => time.now;
  const self: World = {
    time,
    scripts,
    health: new HealthTracker({ breaker: BREAKER, monotonic, now: monotonic, random, later: time.later }),
    sentTo: [],
    send(choices, more = {}) {
      return new TargetAttempts<string>({
        choices,
        key: "k1",
        health: self.health,
        maxAttempts: 3,
        deadlineMs: 600_000,
        monotonic,
        random,
        pause: time.pause,
        isOver: () => false,
        ...more,
        async send({ target: { upstream } }: Attempt) {
          self.sentTo.push([upstream, time.now]);
          const failed = await self.scripts[upstream]?.(time);
          if (failed !== undefined) throw failed;
          return upstream;
        },
      }).run();
    },
  };
  return self;
}

/** One request: the answering upstream or the error, and the called upstreams. */
async function once(
  scripts: Record<string, Script>,
  choices: readonly Choice[],
  more?: Parameters<World["send"]>[1],
): Promise<[result: string, sentTo: string, ms: number]> {
  const { send, time, sentTo } = world(scripts);
  const sent = send(choices, more).catch((thrown) => thrown instanceof GatewayError ? `!${thrown.kind}` : "!!");
  await time.run();
  return [await sent, sentTo.map(([name]) => name).join(" "), time.now];
}

const ok: Script = () => undefined;

Deno.test("each error is retried as the table says", async () => {
  const [ab, abc] = [choicesOf(model("m", "a", "b")), choicesOf(model("m", "a", "b", "c"))];
  const [a, two] = [choicesOf(model("m", "a")), choicesOf(model("m", "a", "b"), model("n", "c"))];
  const fails = (kind: ErrorKind, options?: ErrorOptions): Script => () => error(kind, options);
  let count = 0;
  const cases: [name: string, Record<string, Script>, Choice[], result: string, requested: string][] = [
    ["an answer", { a: ok }, ab, "a", "a"],
    ["no connection", { a: fails("upstream", { fault: "unreachable" }), b: ok }, ab, "b", "a a b"],
    ["no connection, alone", { a: fails("upstream", { fault: "unreachable" }) }, a, "!upstream", "a a"],
    ["a failure", { a: fails("upstream"), b: ok }, ab, "b", "a b"],
    ["a failure, alone", { a: fails("upstream") }, a, "!upstream", "a"],
    ["a limit", { a: fails("exhausted"), b: ok }, ab, "b", "a b"],
    ["three failures", { a: fails("upstream"), b: fails("overloaded"), c: fails("timeout") }, abc, "!timeout", "a b c"],
    ["a mistake", { a: fails("invalid"), b: ok }, ab, "!invalid", "a"],
    ["an unknown model", { a: fails("not_found"), b: ok }, ab, "b", "a b"],
    ["an unknown model, alone", { a: fails("not_found") }, a, "!not_found", "a"],
    ["an unknown model after a failure", { a: fails("upstream"), b: fails("not_found") }, ab, "!upstream", "a b"],
    ["an unknown model, another model", { a: fails("not_found"), b: fails("not_found"), c: ok }, two, "c", "a b c"],
    ["too long", { a: fails("invalid", { code: "context_length_exceeded" }), b: ok, c: ok }, two, "c", "a c"],
    ["a mistake, another model", { a: fails("invalid"), b: ok, c: ok }, two, "!invalid", "a"],
    ["all of a model", { a: fails("upstream"), b: fails("upstream"), c: ok }, two, "c", "a b c"],
    ["not for it", { a: fails("invalid", { fault: "unfit" }), b: ok }, ab, "b", "a b"],
    ["not for anybody", { a: fails("invalid", { fault: "unfit" }), b: fails("upstream") }, ab, "!upstream", "a b"],
    ["key", { a: fails("upstream", { fault: "key" }), b: ok }, ab, "b", "a b"],
    ["a bug", { a: () => Promise.reject(new TypeError("x")), b: ok }, ab, "!!", "a"],
    [
      "counts a short time, alone",
      { a: () => count++ === 0 ? error("exhausted", { retryAfterMs: 1_500 }) : undefined },
      a,
      "a",
      "a a",
    ],
    ["counts a long time, alone", { a: fails("exhausted", { retryAfterMs: 2_500 }) }, a, "!exhausted", "a"],
    ["overloaded, alone", { a: fails("overloaded") }, a, "!overloaded", "a"],
    ["overloaded for a short time", { a: fails("overloaded", { retryAfterMs: 10 }) }, a, "!overloaded", "a a"],
  ];
  for (const [name, scripts, choices, result, requested] of cases) {
    const [got, who] = await once(scripts, choices);
    assertEquals([got, who], [result, requested], name);
  }
});

Deno.test("a request that does not fit its target is not an attempt", async () => {
  const unfit: Script = () => error("invalid", { fault: "unfit" });
  const names = ["a", "b", "c", "d", "e"];
  const scripts = { a: unfit, b: unfit, c: unfit, d: unfit, e: ok };
  assertEquals((await once(scripts, choicesOf(model("m", ...names)))).slice(0, 2), ["e", "a b c d e"]);
});

Deno.test("TargetAttempts makes at most as many attempts as configured", async () => {
  const fails: Script = () => error("upstream");
  for (const most of [1, 2, 3, 4]) {
    const [, sentTo] = await once(
      { a: fails, b: fails, c: fails, d: fails },
      choicesOf(model("m", "a", "b", "c", "d")),
      {
        maxAttempts: most,
      },
    );
    assertEquals(sentTo.split(" ").length, most);
  }
});

const DEAD: readonly Script[] = [
  () => error("upstream", { fault: "unreachable" }),
  () => error("upstream"),
  () => error("exhausted", { retryAfterMs: 50 }),
  () => error("overloaded", { retryAfterMs: 50 }),
  () => error("overloaded"),
];

Deno.test("retries leave attempts for targets that were not tried yet", async () => {
  const dead: Script = () => error("upstream", { fault: "unreachable" });
  const unfit: Script = () => error("invalid", { fault: "unfit" });
  const cases: [Record<string, Script>, names: string, most: number, result: string, requested: string][] = [
    [{ a: dead, b: dead, c: ok }, "abc", 3, "c", "a b c"],
    [{ a: dead, b: dead, c: ok }, "abc", 4, "c", "a a b c"],
    [{ a: dead, b: ok }, "ab", 2, "b", "a b"],
    [{ a: dead, b: dead }, "ab", 3, "!upstream", "a a b"],
    [{ a: dead, b: unfit }, "ab", 2, "!upstream", "a b a"],
  ];
  for (const [scripts, names, most, result, requested] of cases) {
    const choices = choicesOf(model("m", ...names));
    assertEquals(
      (await once(scripts, choices, { maxAttempts: most })).slice(0, 2),
      [result, requested],
      `${names} ${most}`,
    );
  }
});

Deno.test("a healthy target is reached if attempts suffice for all targets before it", async () => {
  const { next: random } = seeded(7);
  const draw = (below: number) => Math.floor(random() * below);
  for (let run = 0; run < 500; run++) {
    const names = [..."abcdefgh"].slice(0, 1 + draw(8));
    const scripts = Object.fromEntries(
      names.map((name) => [name, random() < 0.3 ? ok : DEAD[draw(DEAD.length)] ?? ok]),
    );
    const most = 2 + draw(7);
    const [result, sentTo] = await once(scripts, choicesOf(model("m", ...names)), { maxAttempts: most });
    const first = names.findIndex((name) => scripts[name] === ok);
    const row = `${sentTo} of ${names} with ${most}`;
    if (first >= 0 && first < most) assertEquals(result, names[first], row);
    else assertEquals([result[0], new Set(sentTo.split(" ")).size], ["!", Math.min(most, names.length)], row);
  }
});

Deno.test("the last attempt goes to an available target that was not tried yet", async () => {
  const seed = seeded(11);
  const { next: random } = seed;
  const draw = (below: number) => Math.floor(random() * below);
  let repeats = 0;
  const violations: string[] = [];
  for (let run = 0; run < 60; run++) {
    const names = [..."abcdef"].slice(0, 2 + draw(5));
    const row = model("m", ...names);
    const scripts = Object.fromEntries(
      names.map((name) => [name, random() < 0.2 ? ok : DEAD[draw(DEAD.length)] ?? ok]),
    );
    const { time, health } = world({}, seed);
    const most = 2 + draw(3);
    for (let request = 0; request < 40; request++) {
      const choices = choicesOf(row).sort(() => random() - 0.5);
      const sentTo: string[] = [];
      let isOver = false;
      const sent = new TargetAttempts({
        choices,
        key: "k1",
        health,
        maxAttempts: most,
        deadlineMs: 600_000,
        monotonic: () => time.now,
        random,
        pause: time.pause,
        isOver: () => false,
        async send({ target }) {
          // A target that has failed lately may lack the token that it needs.
          const others = choices.filter((choice) =>
            !sentTo.includes(choice.target.upstream) && choice.target !== target && health.isUp(choice.target, "k1") &&
            !health.isFailing(choice.target, "k1")
          );
          if (sentTo.length === most - 1 && sentTo.includes(target.upstream)) {
            repeats++;
            if (others.length > 0) violations.push(`${sentTo} ${target.upstream} of ${names}`);
          }
          sentTo.push(target.upstream);
          const failed = await scripts[target.upstream]?.(time);
          if (failed !== undefined) throw failed;
        },
      }).run().catch(() => {}).finally(() => isOver = true);
      while (!isOver) await time.run(time.now + 200);
      await sent;
    }
  }
  assertEquals(violations, []);
  assert(repeats > 20, String(repeats));
});

Deno.test("the last attempt prefers an available target to a half-open one", async () => {
  const choices = choicesOf(model("m", "a", "b", "c"));
  const tested = world({ a: () => error("upstream"), b: ok, c: ok });
  const { time, send } = tested;
  const health = tested.health = new HealthTracker({
    breaker: BREAKER,
    monotonic: () => time.now,
    now: () => time.now,
    random: () => 0.5,
    later: time.later,
    probe: () => Promise.resolve("down"),
  });
  const { model: row, target: b } = choices[1] as Choice;
  for (let count = 0; count < 5; count++) {
    const admission = health.acquirePermit({ model: row, target: b, key: "k1" });
    assert(admission.granted);
    health.report(admission.permit, { type: "failure" });
  }
  await time.run(time.now + 7_000);
  assertEquals(choices.map(({ target }) => health.isUp(target, "k1")), [true, false, true]);
  assertEquals(health.unavailability(b, "k1"), undefined);
  assertEquals(await send(choices, { maxAttempts: 2 }), "c");
});

Deno.test("the next target follows at once, the same one after a delay, and one with retry-after at its time", async () => {
  const [a, ab] = [choicesOf(model("m", "a")), choicesOf(model("m", "a", "b"))];
  const [, , atOnce] = await once({ a: () => error("upstream"), b: ok }, ab);
  assertEquals(atOnce, 0);
  for (let seed = 0; seed < 50; seed++) {
    const random = seeded(seed);
    const { send, time, sentTo } = world({ a: () => error("upstream", { fault: "unreachable" }) }, random);
    const sent = assertRejects(() => send(a));
    await time.run();
    await sent;
    const [[, first = 0] = [], [, second = 0] = []] = sentTo;
    assert(second - first <= 100, String(second));
    let limits = 0;
    const reported = world(
      { a: () => limits++ === 0 ? error("exhausted", { retryAfterMs: 1_500 }) : undefined },
      random,
    );
    const answered = reported.send(a);
    await reported.time.run();
    assertEquals(await answered, "a");
    const [, [, again = 0] = []] = reported.sentTo;
    assert(again >= 1_500 && again <= 1_600, String(again));
  }
});

Deno.test("a request does not wait longer than five seconds for a pause that another request got", async () => {
  const { send, time, sentTo } = world({
    a: () => error("exhausted", { retryAfterMs: sentTo.length === 1 ? 60_000 : 1_000 }),
  });
  const choices = choicesOf(model("m", "a"));
  const both = Promise.all([1, 2].map(() => assertRejects(() => send(choices), GatewayError, "exhausted")));
  await time.run();
  await both;
  assert(time.now <= 5_000, `${time.now}`);
});

Deno.test("backoffMs() is spread over the whole range, and doubles up to two seconds", () => {
  for (const [retries, most] of [[0, 100], [1, 200], [2, 400], [4, 1_600], [5, 2_000], [50, 2_000]] as const) {
    assertEquals(backoffMs(retries, () => 0), 0);
    assertEquals(backoffMs(retries, () => 0.5), most / 2);
  }
});

Deno.test("nothing is tried after the deadline, and nothing slow after half of it", async () => {
  const choices = choicesOf(model("m", "a", "b"));
  const slow = (ms: number, kind: ErrorKind, options?: ErrorOptions): Script => async (time) => {
    await time.pause(ms);
    return error(kind, options);
  };
  const cases: [Script, requested: string][] = [
    [slow(299, "timeout"), "a b"],
    [slow(301, "timeout"), "a"],
    [slow(301, "timeout", { fault: "status" }), "a b"],
    [slow(301, "upstream"), "a b"],
    [slow(601, "upstream"), "a"],
  ];
  for (const [a, expected] of cases) {
    const [, requested] = await once({ a, b: ok }, choices, { deadlineMs: 600 });
    assertEquals(requested, expected);
  }
});

Deno.test("a request that may have started is not repeated", async () => {
  const choices = choicesOf(model("m", "a", "b"));
  const cases: [GatewayError, requested: string][] = [
    [error("upstream", { final: true }), "a"],
    [error("upstream"), "a b"],
    [error("upstream", { fault: "key" }), "a b"],
    [error("exhausted"), "a b"],
  ];
  for (const [thrown, expected] of cases) {
    const [, requested] = await once({ a: () => thrown, b: ok }, choices, { atMostOnce: true });
    assertEquals(requested, expected);
  }
});

Deno.test("if no target is available, the error says when one will be", async () => {
  const choices = choicesOf(model("m", "a", "b"));
  const { send, time, health, scripts } = world({ a: () => error("exhausted", { retryAfterMs: 9_000 }) });
  scripts.b = () => error("exhausted", { retryAfterMs: 7_000 });
  const refused = async () => {
    const sent = assertRejects(() => send(choices), GatewayError);
    await time.run(time.now);
    const { kind, retryAfterMs } = await sent;
    return [kind, retryAfterMs];
  };
  assertEquals(await refused(), ["exhausted", 7_000]);
  assertEquals(await refused(), ["exhausted", 7_000]);
  await time.run(time.now + 9_000);
  scripts.a = scripts.b = () => error("upstream");
  for (let request = 0; request < 5; request++) assertEquals((await refused())[0], "upstream");
  assertEquals(health.snapshot().map(({ state }) => state), ["open", "closed"]);
});

Deno.test("a retry budget allows ten retries at once, then one per second and one per five requests", () => {
  const budget = new RetryBudget();
  const retries = (now: number) => {
    let taken = 0;
    for (; budget.has(now); taken++) budget.take();
    return taken;
  };
  assertEquals(retries(0), 10);
  assertEquals(retries(999), 0);
  assertEquals(retries(1_000), 1);
  assertEquals(retries(4_500), 3);
  for (let request = 0; request < 18; request++) budget.deposit();
  assertEquals(retries(4_500), 4);
  for (let request = 0; request < 1_000; request++) budget.deposit();
  assertEquals(retries(4_500), 10);
  assertEquals(retries(10_000_000), 10);
});

Deno.test("an untried target is never refused for lack of budget if it is healthy or the last one", async () => {
  const choices = choicesOf(model("m", "a", "b", "c"));
  const fails: Script = () => error("upstream");
  const { send, time, sentTo, health, scripts } = world({ a: fails, b: fails, c: ok });
  const spend = () => {
    for (const { target } of choices) {
      const budget = health.retryBudget(target);
      for (; budget.has(time.now);) budget.take();
    }
  };
  const next = async () => {
    spend();
    sentTo.length = 0;
    const sent = send(choices).catch(() => "!");
    await time.run(time.now);
    return [await sent, sentTo.map(([name]) => name).join(" ")];
  };
  // No attempt is recorded yet, so all targets count as healthy.
  assertEquals(await next(), ["c", "a b c"]);
  assertEquals(await next(), ["c", "a c"]);
  scripts.c = fails;
  assertEquals(await next(), ["!", "a c b"]);
  assertEquals(await next(), ["!", "a c"]);
  scripts.c = ok;
  assertEquals(await next(), ["c", "a c"]);
  // A token is added after a second: the target in between is tried, too.
  scripts.b = ok;
  scripts.c = fails;
  spend();
  sentTo.length = 0;
  await time.run(time.now + 1_000);
  assertEquals(await send(choices), "b");
});

Deno.test("a target is not tried again once its budget is spent", async () => {
  const choices = choicesOf(model("m", "a"));
  const { send, time, sentTo, health } = world({ a: () => error("upstream", { fault: "unreachable" }) });
  const budget = health.retryBudget({ upstream: "a", model: "m" });
  for (; budget.has(0);) budget.take();
  const sent = assertRejects(() => send(choices));
  await time.run(100);
  await sent;
  assertEquals(sentTo.length, 1);
});

/** Figures of a storm. */
interface Storm {
  requests: number;
  attempts: number;
  answered: number;
  /** The last requests after the recovery, and how many of them were answered. */
  after: { requests: number; answered: number };
}

/** Requests at 40 per second: 30 s of failures, and 30 s in which all is well. */
const PER_SECOND = 40;
const STORM_MS = 30_000;
const REST_MS = 30_000;
/** Time after the storm until everything is normal again. */
const SOON_MS = 20_000;

async function storm(choices: readonly Choice[], scripts: Record<string, Script>, seed: number): Promise<Storm> {
  const live: Record<string, Script> = {};
  for (const { target: { upstream } } of choices) {
    live[upstream] = async (time) => {
      if (time.now < STORM_MS && scripts[upstream] !== undefined) return await scripts[upstream](time);
      await time.pause(50);
      return undefined;
    };
  }
  const { send, time, sentTo } = world(live, seeded(seed));
  const counts: Storm = { requests: 0, attempts: 0, answered: 0, after: { requests: 0, answered: 0 } };
  const request = async (at: number) => {
    await time.pause(at);
    const isAfter = at > STORM_MS + SOON_MS;
    if (at < STORM_MS) counts.requests++;
    if (isAfter) counts.after.requests++;
    try {
      await send(choices);
      counts.answered++;
      if (isAfter) counts.after.answered++;
    } catch (thrown) {
      assert(thrown instanceof GatewayError);
    }
  };
  const count = PER_SECOND * (STORM_MS + REST_MS) / 1_000;
  const sent = Array.from({ length: count }, (_, index) => request(index * 1_000 / PER_SECOND));
  await time.run();
  await Promise.all(sent);
  counts.attempts = sentTo.filter(([, at]) => at < STORM_MS).length;
  return counts;
}

Deno.test("a storm of failures is not amplified, and ends when it is over", async () => {
  const after = (ms: number, kind: ErrorKind, options?: ErrorOptions): Script => async (time) => {
    await time.pause(ms);
    return error(kind, options);
  };
  const [one, two, three] = [model("m", "a"), model("m", "a", "b"), model("m", "a", "b", "c")];
  const cases: [name: string, Model, Record<string, Script>][] = [
    ["one target that fails", one, { a: after(20, "upstream") }],
    ["one target that cannot be reached", one, { a: after(1, "upstream", { fault: "unreachable" }) }],
    ["one target that is overloaded", one, { a: after(5, "overloaded") }],
    ["one target at its limit", one, { a: after(5, "exhausted") }],
    ["two targets that fail", two, { a: after(20, "upstream"), b: after(300, "upstream") }],
    ["two black holes", two, { a: after(5_000, "timeout"), b: after(5_000, "timeout") }],
    ["three black holes", three, {
      a: after(3_000, "timeout"),
      b: after(4_000, "timeout"),
      c: after(5_000, "timeout"),
    }],
    ["three that cannot be reached", three, {
      a: after(1, "upstream", { fault: "unreachable" }),
      b: after(1, "upstream", { fault: "unreachable" }),
      c: after(1, "upstream", { fault: "unreachable" }),
    }],
    ["three overloaded", three, { a: after(9, "overloaded"), b: after(9, "overloaded"), c: after(9, "overloaded") }],
  ];
  const few = skipInQuick("Most storms of failures");
  for (const [index, [name, row, scripts]] of cases.entries()) {
    if (few && index % 3 > 0) continue;
    const reported = await storm(choicesOf(row), scripts, index);
    // The last target of a request needs no budget; all other attempts are limited to a fifth of the requests, and one
    // per second.
    const most = row.targets.length === 1 ? 1.25 : 2.25;
    assert(reported.attempts <= reported.requests * most, `${name}: ${JSON.stringify(reported)}`);
    assertEquals(reported.after.answered, reported.after.requests, name);
  }
});

Deno.test("a failing target next to a healthy one fails no request", async () => {
  const fails: Script[] = [
    async (time) => {
      await time.pause(20);
      return error("upstream");
    },
    () => error("upstream", { fault: "unreachable" }),
    async (time) => {
      await time.pause(2_000);
      return error("timeout");
    },
    () => error("exhausted", { retryAfterMs: 3_000 }),
  ];
  for (const [seed, a] of fails.entries()) {
    const reported = await storm(choicesOf(model("m", "a", "b")), { a }, seed);
    assertEquals(reported.answered, PER_SECOND * 60, `${a}: ${JSON.stringify(reported)}`);
  }
});
