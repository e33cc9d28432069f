import { assert, assertEquals } from "@std/assert";
import { type Model, modelSchema, type Target } from "../../lib/catalog/model.ts";
import { type Choice, planChoices, type PlanParts, type TargetFacts } from "../../lib/routing/plan.ts";
import { NO_PREFERENCES, type ProviderPreferences } from "../../lib/routing/preferences.ts";
import { seeded } from "../support/random.ts";

/** A target of the upstream of this name. */
function target(upstream: string, more: Partial<Target> = {}): Target {
  return { upstream, model: "m", priority: 0, weight: 1, ...more };
}

const MODEL = modelSchema.parse({
  id: "acme/one",
  created: 1,
  context_length: 1,
  pricing: { prompt: "0", completion: "0" },
  targets: [target("a")],
});

function model(id: string, targets: readonly Target[]): Model {
  return { ...MODEL, id, targets: [...targets] };
}

const PLAIN: TargetFacts = {
  slugs: [],
  isUp: true,
  isNative: false,
  isIssuer: false,
  isWarm: false,
  firstMs: () => undefined,
  tokensPerSecond: () => undefined,
};

interface Planned {
  preferences?: Partial<ProviderPreferences>;
  facts?: Record<string, Partial<TargetFacts>>;
  random?: () => number;
}

/** The plan of one model's targets, as names of upstreams. */
function plan(targets: readonly Target[], planned: Planned = {}): string {
  return planAll([{ model: model("acme/one", targets), price: { prompt: 1n, completion: 1n } }], planned)
    .map(({ target: { upstream } }) => upstream).join(" ");
}

function planAll(models: PlanParts["models"], { preferences, facts = {}, random = () => 0 }: Planned): Choice[] {
  return planChoices({
    models,
    preferences: { ...NO_PREFERENCES, ...preferences },
    facts: ({ upstream }) => ({ ...PLAIN, slugs: [upstream], ...facts[upstream] }),
    draw: random,
  });
}

Deno.test("a plan contains every target once, by priority", () => {
  const random = seeded(1);
  for (let round = 0; round < 500; round++) {
    const targets = Array.from(
      { length: 1 + random.below(6) },
      (_, index) => target(`u${index}`, { priority: random.below(3), weight: random.below(3) }),
    );
    const row = model("acme/one", targets);
    const planned = planAll([{ model: row, price: { prompt: 1n, completion: 1n } }], { random: random.next });
    assertEquals(planned.length, targets.length);
    assertEquals(new Set(planned.map((choice) => choice.target)), new Set(row.targets));
    for (const [index, { target: { priority, weight } }] of planned.entries()) {
      const next = planned[index + 1]?.target;
      if (next === undefined) continue;
      assert(priority <= next.priority);
      if (priority === next.priority) assert(weight > 0 || next.weight === 0, JSON.stringify(planned));
    }
  }
});

Deno.test("targets of one priority are ordered randomly by weight", () => {
  const random = seeded(2);
  const weights = [5, 3, 1.5, 0.5, 0];
  const targets = weights.map((weight, index) => target(String(index), { weight }));
  const late = target("late", { priority: 1, weight: 100 });
  const rounds = 8_000;
  const first = weights.map(() => 0);
  const second = weights.map(() => 0);
  for (let round = 0; round < rounds; round++) {
    const [one, two] = plan([...targets, late], { random: random.next }).split(" ").map(Number);
    first[one ?? -1] = (first[one ?? -1] ?? 0) + 1;
    if (one === 0) second[two ?? -1] = (second[two ?? -1] ?? 0) + 1;
  }
  for (const [index, weight] of weights.entries()) {
    assert(Math.abs((first[index] ?? 0) / rounds - weight / 10) < 0.015, `${first}`);
  }
  // The others share the remaining requests.
  const led = second.reduce((sum, count) => sum + count, 0);
  for (const [index, weight] of weights.entries()) {
    if (index > 0) assert(Math.abs((second[index] ?? 0) / led - weight / 5) < 0.02, `${second}`);
  }
});

Deno.test("a plan handles random numbers at the edges", () => {
  const targets = [target("a", { weight: 0 }), target("b", { weight: 2 }), target("c", { weight: 0 })];
  for (const number of [0, 0.5, 1 - Number.EPSILON]) {
    assertEquals(plan(targets, { random: () => number }), "b a c", String(number));
  }
  assertEquals(planAll([], {}), []);
});

Deno.test("among equals the client's own protocol is first, but weights are kept", () => {
  const random = seeded(3);
  const targets = [target("chat"), target("messages"), target("other"), target("heavy", { weight: 3 })];
  const facts = { messages: { isNative: true } };
  let heavy = 0;
  for (let round = 0; round < 3_000; round++) {
    const names = plan(targets, { facts, random: random.next }).split(" ");
    assert(names.indexOf("messages") < names.indexOf("chat") && names.indexOf("messages") < names.indexOf("other"));
    if (names[0] === "heavy") heavy++;
  }
  assert(Math.abs(heavy / 3_000 - 0.5) < 0.04, String(heavy));
  assertEquals(plan([target("chat"), target("messages", { priority: 1 })], { facts }), "chat messages");
});

Deno.test("targets that can read the prompt's signatures are first within their priority", () => {
  const facts = { b: { isIssuer: true }, d: { isIssuer: true } };
  const targets = [
    target("a", { weight: 100 }),
    target("b", { weight: 0 }),
    target("c", { priority: 1 }),
    target("d", { priority: 1 }),
  ];
  assertEquals(plan(targets, { facts }), "b a d c");
});

Deno.test("unavailable targets are last, whatever their priority", () => {
  const targets = [target("a"), target("b", { priority: 1 }), target("c", { priority: 2 })];
  assertEquals(plan(targets, { facts: { a: { isUp: false } } }), "b c a");
});

Deno.test("a plan follows the client's preferences", () => {
  const targets = [target("a"), target("b", { priority: 1 }), target("c", { priority: 2 })];
  const facts = {
    a: { slugs: ["a", "openai"], firstMs: () => 900, tokensPerSecond: () => 10 },
    b: { slugs: ["b", "anthropic"], firstMs: () => 300, tokensPerSecond: () => 50 },
    c: { slugs: ["c", "openai"] },
  };
  const cases: [Partial<ProviderPreferences>, string][] = [
    [{}, "a b c"],
    [{ order: ["c"] }, "c a b"],
    [{ order: ["b", "c"] }, "b c a"],
    [{ order: ["openai"] }, "a c b"],
    [{ order: ["anthropic", "openai"] }, "b a c"],
    [{ order: ["c", "b"], allowFallbacks: false }, "c b"],
    [{ allowFallbacks: false }, "a"],
    [{ only: new Set(["openai"]) }, "a c"],
    [{ only: new Set(["b", "c"]), order: ["c"] }, "c b"],
    [{ ignore: new Set(["openai"]) }, "b"],
    [{ ignore: new Set(["a"]), allowFallbacks: false }, "b"],
    [{ only: new Set(["a"]), ignore: new Set(["openai"]) }, ""],
    [{ sort: { by: "latency", acrossModels: false } }, "b a c"],
    [{ sort: { by: "throughput", acrossModels: false } }, "b a c"],
    [{ sort: { by: "price", acrossModels: false } }, "a b c"],
    // If there is an order, nothing else decides.
    [{ sort: { by: "latency", acrossModels: false }, order: ["c"] }, "c a b"],
    [{ minThroughput: [{ share: 0.5, value: 50 }] }, "b c a"],
    [{ minThroughput: [{ share: 0.5, value: 51 }] }, "c a b"],
    [{ maxLatency: [{ share: 0.5, value: 0.3 }] }, "b c a"],
    [{ maxLatency: [{ share: 0.5, value: 0.9 }] }, "a b c"],
  ];
  for (const [preferences, expected] of cases) {
    assertEquals(plan(targets, { preferences, facts }), expected, String(expected));
  }
});

Deno.test("a plan respects exclusions and order, over random preferences", () => {
  const random = seeded(4);
  const names = ["a", "b", "c", "d"];
  const some = () => names.filter(() => random.chance(0.4));
  for (let round = 0; round < 5_000; round++) {
    const targets = names.filter(() => random.chance(0.8)).map((name) =>
      target(name, { priority: random.pick([0, 1]) })
    );
    if (targets.length === 0) continue;
    const order = random.chance(0.5) ? undefined : some();
    const only = random.chance(0.5) ? undefined : new Set(some());
    const ignore = new Set(some());
    const allowFallbacks = random.chance(0.5);
    const preferences = { ...(order && { order }), ...(only && { only }), ignore, allowFallbacks };
    const planned = plan(targets, { preferences, random: random.next }).split(" ").filter((name) => name !== "");
    for (const name of planned) assert((only?.has(name) ?? true) && !ignore.has(name));
    const listed = order === undefined ? [] : order.filter((name) => planned.includes(name));
    assertEquals(planned.slice(0, listed.length), listed);
    const wanted = targets.filter(({ upstream }) => (only?.has(upstream) ?? true) && !ignore.has(upstream));
    const most = allowFallbacks ? wanted.length : order === undefined ? Math.min(1, wanted.length) : listed.length;
    assertEquals(planned.length, most);
  }
});

Deno.test("models follow each other, unless the client wants their targets sorted together", () => {
  const one = model("acme/one", [target("a"), target("b", { priority: 1 })]);
  const two = model("acme/two", [target("c"), target("d", { priority: 1 })]);
  const models = [
    { model: one, price: { prompt: 5n, completion: 5n } },
    { model: two, price: { prompt: 1n, completion: 8n } },
  ];
  const facts = { c: { firstMs: () => 10 }, a: { firstMs: () => 20 } };
  const cases: [Partial<ProviderPreferences>, string][] = [
    [{}, "one/a one/b two/c two/d"],
    [{ allowFallbacks: false }, "one/a two/c"],
    [{ sort: { by: "price", acrossModels: false } }, "one/a one/b two/c two/d"],
    [{ sort: { by: "price", acrossModels: true } }, "two/c two/d one/a one/b"],
    [{ sort: { by: "latency", acrossModels: true } }, "two/c one/a one/b two/d"],
    [{ order: ["d"] }, "one/a one/b two/d two/c"],
    [{ only: new Set(["c"]) }, "two/c"],
  ];
  for (const [preferences, expected] of cases) {
    const planned = planAll(models, { preferences, facts });
    assertEquals(planned.map((choice) => `${choice.model.id.slice(5)}/${choice.target.upstream}`).join(" "), expected);
  }
});
