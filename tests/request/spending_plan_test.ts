/** Context tiers, service tiers, time windows and tool prices: the hold is never less than the charge. */
import { assert, assertEquals } from "@std/assert";
import { billUsed } from "../../lib/billing/extras.ts";
import { costOfExtras, costOfTokens, pricesAt } from "../../lib/billing/price.ts";
import { tokenBound } from "../../lib/billing/token_bound.ts";
import { type Model, modelSchema } from "../../lib/catalog/model.ts";
import { pricingAt } from "../../lib/catalog/catalog.ts";
import type { Gateway } from "../../lib/gateway.ts";
import type { JsonObject } from "../../lib/json/mod.ts";
import type { Prompt } from "../../lib/protocols/canonical/types.ts";
import { UnsupportedParameters } from "../../lib/protocols/canonical/unsupported_parameters.ts";
import type { Candidate } from "../../lib/request/candidates.ts";
import { planSpending } from "../../lib/request/spending_plan.ts";
import { NO_TOKENS } from "../../lib/store/days.ts";
import type { BilledTokens, BudgetClaim } from "../../lib/store/ledger.ts";
import { promptOf, user } from "../protocols/canonical/messages.ts";
import { type Random, seeded } from "../support/random.ts";
import { rounds } from "../support/skip.ts";
import { plainModel } from "../support/plain_model.ts";

// The part of a gateway that matters here: no upstream has a minimum.
const gateway = { upstreams: new Map() } as unknown as Gateway;
const budgets: BudgetClaim[] = [{ scope: "key", id: "k", budget: 1n, since: 0 }];
const INPUTS = ["prompt", "input_cache_read", "input_cache_write_5m", "input_cache_write_1h"] as const;
const TIERS = ["flex", "priority", "scale"];
const TOOLS = ["web_search", "code_execution"];

function rowOf(pricing: JsonObject, more: JsonObject = {}): Model {
  return modelSchema.parse(plainModel({ top_provider: { max_completion_tokens: 500 }, pricing, ...more }));
}

function candidateOf(model: Model, prompt: Prompt, { now = 0, factor = "1" } = {}): Candidate {
  const at = { now, factor };
  const extraPrices = pricesAt(model, at).extraPrices;
  return { model, prompt, dropped: new UnsupportedParameters(), sheet: pricesAt(model, at).sheet, extraPrices };
}

/** Cost of an answer before it is capped by the hold. */
function uncapped(
  { sheet: plain, extraPrices, prompt }: Candidate,
  { tokens, tiers, hostedCalls }: { tokens: BilledTokens; tiers?: string[]; hostedCalls?: Record<string, number> },
): bigint {
  const used = { ...(tiers !== undefined && { tiers }), ...(hostedCalls !== undefined && { hostedCalls }) };
  const terms = { sheet: plain, extraPrices, tier: prompt.extras?.tier };
  const { sheet, details } = billUsed({ used: Object.keys(used).length === 0 ? undefined : used, tokens }, terms);
  return costOfTokens(tokens, sheet) + costOfExtras(details?.extras ?? [], sheet);
}

function randomPricing({ below, chance }: Random): JsonObject {
  const price = () => `0.${String(below(1_000_000)).padStart(8, "0")}`;
  const tokens = (): JsonObject => ({
    prompt: price(),
    completion: price(),
    ...Object.fromEntries(INPUTS.slice(1).filter(() => chance(0.5)).map((name) => [name, price()])),
  });
  const tiered = (): JsonObject => ({
    ...tokens(),
    ...(chance(0.6) && {
      context_tiers: [...new Set([1 + below(300), 301 + below(300), 601 + below(9_400)])].slice(below(3))
        .map((above) => ({ above, ...tokens() })).reverse(),
    }),
  });
  const names = TIERS.filter(() => chance(0.5));
  return {
    ...tiered(),
    ...(names.length > 0 && { service_tiers: Object.fromEntries(names.map((name) => [name, tiered()])) }),
    ...(chance(0.5) && { hosted_tools: Object.fromEntries(TOOLS.map((name) => [name, price()])) }),
    ...(chance(0.5) && {
      time_windows: [
        { name: "off-peak", from: "16:30", until: "00:30", ...tiered() },
        { name: "noon", from: "12:00", until: "12:01", ...tiered() },
      ],
    }),
  };
}

/** Thresholds of a model and the counts beside them, within the bound. */
function edges(model: Model, most: number): number[] {
  const pricings = [model.pricing, ...(model.pricing.time_windows ?? []).map(({ pricing }) => pricing)];
  const tiered = pricings.flatMap((pricing) => [pricing, ...Object.values(pricing.service_tiers ?? {})]);
  const thresholds = tiered.flatMap(({ context_tiers = [] }) => context_tiers.map(({ above }) => above));
  return [0, most, ...thresholds.flatMap((above) => [above - 1, above, above + 1])]
    .filter((count) => count >= 0 && count <= most);
}

function spread(count: number, { below, pick }: Random): BilledTokens {
  const tokens: BilledTokens = { ...NO_TOKENS };
  const first = below(count + 1);
  tokens[pick(INPUTS)] += first;
  tokens[pick(INPUTS)] += count - first;
  return tokens;
}

Deno.test("a hold covers every answer in any tier, at any time and threshold, with all calls", () => {
  const random = seeded(23);
  const { below, chance, pick } = random;
  for (let round = 0; round < rounds(3000); round++) {
    const model = rowOf(randomPricing(random));
    const tools = chance(0.4) ? TOOLS.filter(() => chance(0.7)) : [];
    const tier = chance(0.3) ? pick(TIERS) : undefined;
    const maxTokens = chance(0.7) ? 1 + below(700) : undefined;
    const prompt = promptOf([user({ type: "text", text: "x".repeat(below(900)) })], {
      ...(maxTokens !== undefined && { maxTokens }),
      ...((tools.length > 0 || tier !== undefined) && {
        extras: {
          remoteMcp: false,
          hostedTools: tools.map((name) => ({ name, maxCalls: 1 + below(3) })),
          ...(tier !== undefined && { tier }),
        },
      }),
    });
    const now = below(1440) * 60_000;
    const candidate = candidateOf(model, prompt, { now, factor: pick(["1", "0.5", "2"]) });
    const plan = planSpending({ first: candidate, others: [], budgets, gateway });
    const bound = tokenBound(prompt, model);
    for (const input of edges(model, bound.input)) {
      const tokens = { ...spread(input, random), completion: chance(0.5) ? bound.output : below(bound.output + 1) };
      const hostedCalls = Object.fromEntries(
        (prompt.extras?.hostedTools ?? []).map(({ name, maxCalls = 0 }) => [name, maxCalls]),
      );
      for (const tiers of [undefined, [], ...TIERS.map((name) => [name]), ["default", pick(TIERS), pick(TIERS)]]) {
        const cost = uncapped(candidate, { tokens, ...(tiers !== undefined && { tiers }), hostedCalls });
        assert(
          cost <= plan.maxCost,
          `round ${round}: ${cost} of ${input} tokens in ${tiers} is more than ${plan.maxCost}`,
        );
      }
    }
  }
});

Deno.test("an output capped by the budget is affordable in every tier that its input can reach", () => {
  const random = seeded(29);
  const { below, pick } = random;
  let caps = 0;
  for (let round = 0; round < rounds(2000); round++) {
    const model = rowOf(randomPricing(random));
    const prompt = promptOf([user({ type: "text", text: "x".repeat(below(900)) })]);
    const candidate = candidateOf(model, prompt, { now: below(1440) * 60_000 });
    const full = planSpending({ first: candidate, others: [], budgets, gateway }).maxCost;
    const left = full * BigInt(50 + below(50)) / 100n;
    const { cap, maxCost } = planSpending({ first: candidate, others: [], budgets, gateway, available: left });
    if (cap === undefined) continue;
    caps++;
    assert(maxCost <= left);
    for (const input of edges(model, tokenBound(prompt, model).input)) {
      const tokens = { ...spread(input, random), completion: cap.tokens };
      assert(uncapped(candidate, { tokens, tiers: [pick(TIERS)] }) <= maxCost);
    }
  }
  assert(caps > 50, `only ${caps} rounds had a cap`);
});

const TIERED = rowOf({
  prompt: "0.000001",
  completion: "0.00001",
  context_tiers: [
    { above: 2000, prompt: "0.000004", completion: "0.00004" },
    { above: 1000, prompt: "0.000002", completion: "0.00002", input_cache_read: "0.0000001" },
  ],
});

Deno.test("a request pays the tier of all its input, cache included: the lower one at a threshold", () => {
  const candidate = candidateOf(TIERED, promptOf([]));
  const bill = (input: Partial<BilledTokens>) =>
    billUsed({ tokens: { ...NO_TOKENS, ...input } }, { sheet: candidate.sheet, extraPrices: candidate.extraPrices });
  const cases: [Partial<BilledTokens>, price: string, tier: { above: number; up_to?: number }][] = [
    [{}, "0.000001", { above: 0, up_to: 1000 }],
    [{ prompt: 999 }, "0.000001", { above: 0, up_to: 1000 }],
    [{ prompt: 1000 }, "0.000001", { above: 0, up_to: 1000 }],
    [{ prompt: 1001 }, "0.000002", { above: 1000, up_to: 2000 }],
    [{ prompt: 1, input_cache_read: 1000 }, "0.000002", { above: 1000, up_to: 2000 }],
    [{ prompt: 500, input_cache_write_5m: 250, input_cache_write_1h: 251 }, "0.000002", { above: 1000, up_to: 2000 }],
    [{ prompt: 2000, completion: 5000 }, "0.000002", { above: 1000, up_to: 2000 }],
    [{ prompt: 2001 }, "0.000004", { above: 2000 }],
  ];
  for (const [tokens, price, context_tier] of cases) {
    const { sheet, details } = bill(tokens);
    assertEquals([sheet.prompt, details], [price, { context_tier }], JSON.stringify(tokens));
  }
});

Deno.test("a hold uses the most expensive tier that the input can reach, and no higher one", () => {
  const most = (bytes: number) => {
    const prompt = promptOf([user({ type: "text", text: "x".repeat(bytes) })], { maxTokens: 1 });
    const { maxCost } = planSpending({ first: candidateOf(TIERED, prompt), others: [], budgets, gateway });
    const { input } = tokenBound(prompt, TIERED);
    return { input, perToken: maxCost / BigInt(input + 10) };
  };
  const base = most(0).input;
  // One token of output costs as much as ten of input in every tier.
  assertEquals(most(1000 - base), { input: 1000, perToken: 1_000_000n });
  assertEquals(most(1001 - base), { input: 1001, perToken: 2_000_000n });
  assertEquals(most(2000 - base), { input: 2000, perToken: 2_000_000n });
  assertEquals(most(2001 - base), { input: 2001, perToken: 4_000_000n });
});

Deno.test("time windows are in UTC, by the start of the request, and may cross midnight", () => {
  const model = rowOf({
    prompt: "1",
    completion: "1",
    hosted_tools: { web_search: "7" },
    service_tiers: { priority: { prompt: "9", completion: "9" } },
    time_windows: [{ name: "off-peak", from: "16:30", until: "00:30", prompt: "0.5", completion: "0.5" }],
  });
  const at = (time: string) => pricingAt(model, Date.parse(`2026-11-21T${time}Z`));
  const cases: [time: string, prompt: string, window: string | undefined][] = [
    ["16:29:59.999", "1", undefined],
    ["16:30:00.000", "0.5", "off-peak"],
    ["23:59:59.999", "0.5", "off-peak"],
    ["00:00:00.000", "0.5", "off-peak"],
    ["00:29:59.999", "0.5", "off-peak"],
    ["00:30:00.000", "1", undefined],
  ];
  for (const [time, prompt, window] of cases) assertEquals([at(time).prompt, at(time).window], [prompt, window], time);
  const now = Date.parse("2026-11-21T20:00:00Z");
  const { sheet, extraPrices } = candidateOf(model, promptOf([]), { now });
  const tokens = { ...NO_TOKENS, prompt: 1 };
  assertEquals(billUsed({ tokens }, { sheet, extraPrices }), { sheet, details: { price_window: "off-peak" } });
  // A service tier has one price all day.
  const priority = billUsed({ tokens, used: { tiers: ["priority"] } }, { sheet, extraPrices });
  assertEquals([priority.sheet.prompt, priority.details], ["9", { service_tier: "priority" }]);
  assertEquals(extraPrices?.hostedTools, { web_search: "7" });
});
