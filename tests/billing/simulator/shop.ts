/** The models, customers, limits and budgets of the simulated gateway. */
import { type Model, modelSchema } from "../../../lib/catalog/model.ts";
import { type Budget, type Group, groupSchema } from "../../../lib/config.ts";
import type { LimitRequest, LimitUnit } from "../../../lib/limits/limiter.ts";
import { budgetClaims } from "../../../lib/billing/budgets.ts";
import { pricesAt } from "../../../lib/billing/price.ts";
import type { BilledTokens, BudgetClaim, PriceSheet } from "../../../lib/store/ledger.ts";
import type { Random } from "../../support/random.ts";
import { type AnsweringModel, type Arriving, tokensOf } from "./truth.ts";

/** Price per token of each class in 1e-12 USD for the checker, never parsed from a string. */
export interface Picos {
  prompt: bigint;
  input_cache_read: bigint;
  input_cache_write_5m: bigint;
  input_cache_write_1h: bigint;
  completion: bigint;
}

/** A model with its prices from a moment on, in Unix milliseconds; the first from the beginning of time. */
export interface Ware {
  model: Model;
  periods: readonly { from: number; picos: Picos }[];
  limits: readonly Limit[];
}

/** A key with the rules of its group. */
export interface Customer {
  keyId: string;
  group: string;
  /** The factor of its group, in millionths. */
  millionths: bigint;
  factor: string;
  claims(ware: Ware, tokens: number): LimitRequest[];
  budgets(now: number): BudgetClaim[];
}

const NOON = Date.UTC(2026, 10, 21, 12);
const MINUTE = 60_000;

function picosOf(prompt: bigint, completion: bigint): Picos {
  return {
    prompt,
    input_cache_read: prompt / 10n,
    input_cache_write_5m: prompt * 2n,
    input_cache_write_1h: prompt * 3n,
    completion,
  };
}

/** Digits of a price. */
function usd(picos: bigint): string {
  const digits = String(picos).padStart(13, "0");
  return `${digits.slice(0, -12)}.${digits.slice(-12)}`;
}

function pricingOf(picos: Picos): Record<keyof Picos, string> {
  return {
    prompt: usd(picos.prompt),
    input_cache_read: usd(picos.input_cache_read),
    input_cache_write_5m: usd(picos.input_cache_write_5m),
    input_cache_write_1h: usd(picos.input_cache_write_1h),
    completion: usd(picos.completion),
  };
}

function ware(id: string, { periods, limits = [] }: { periods: Ware["periods"]; limits?: Ware["limits"] }): Ware {
  const [first, ...changes] = periods;
  const model = modelSchema.parse({
    id,
    created: 0,
    context_length: 10_000,
    pricing: first === undefined ? undefined : pricingOf(first.picos),
    price_changes: changes.map(({ from, picos }) => ({ from: new Date(from).toISOString(), ...pricingOf(picos) })),
    targets: [{ upstream: "first", model: "any" }],
  });
  return { model, periods, limits };
}

/** Models: cheap, expensive, with frequent price changes, free, and with prices of maximum precision. */
export const WARES: readonly Ware[] = [
  ware("sim/cheap", { periods: [{ from: 0, picos: picosOf(100_000n, 700_000n) }] }),
  ware("sim/dear", {
    periods: [
      { from: 0, picos: picosOf(3_333_200n, 900_719_925_300n) },
      { from: NOON + 30 * MINUTE, picos: picosOf(1_000n, 2_000n) },
    ],
    limits: [{ of: "model", unit: "requests", limit: 30 }, { of: "model", unit: "concurrency", limit: 6 }],
  }),
  ware("sim/moving", {
    periods: [0, ...Array.from({ length: 40 }, (_, i) => NOON + (i * i * 7 + 1) * 1_000)].map((from, i) => ({
      from,
      picos: picosOf(BigInt(50_000 + 10_000 * ((i * 7) % 11)), BigInt(400_000 + 100_000 * ((i * 5) % 13))),
    })),
  }),
  ware("sim/free", { periods: [{ from: 0, picos: picosOf(0n, 0n) }] }),
  ware("sim/digits", { periods: [{ from: 0, picos: picosOf(79_999_990_000_000n, 123_456_789_000_000n) }] }),
];

/** A limit and its owner; a key's own limit has the unit `requests`. */
interface Limit {
  of: "key" | "group" | "model";
  unit: LimitUnit;
  limit: number;
  reportOnly?: boolean;
}

const GROUPS: Readonly<Record<string, { millionths: bigint; rules: Group; limits: readonly Limit[] }>> = {
  open: { millionths: 1_000_000n, rules: groupSchema.parse({}), limits: [] },
  budget: {
    millionths: 800_000n,
    rules: groupSchema.parse({
      price_factor: "0.8",
      budget: { usd: "0.0004", period: "day" },
      key_budget: { usd: "0.00035", period: "total" },
    }),
    limits: [{ of: "key", unit: "requests", limit: 40 }],
  },
  limited: {
    millionths: 1_250_000n,
    rules: groupSchema.parse({ price_factor: "1.25" }),
    limits: [
      { of: "key", unit: "concurrency", limit: 2 },
      { of: "key", unit: "requests", limit: 12 },
      { of: "group", unit: "requests", limit: 20 },
      { of: "group", unit: "tokens", limit: 1_500 },
      { of: "group", unit: "concurrency", limit: 4 },
    ],
  },
  digits: {
    millionths: 123_457n,
    rules: groupSchema.parse({ price_factor: "0.123457", budget: { usd: "20000", period: "week" } }),
    limits: [],
  },
  watched: {
    millionths: 1_000_000n,
    rules: groupSchema.parse({ price_factor: "1.0" }),
    limits: [
      { of: "group", unit: "requests", limit: 2, reportOnly: true },
      { of: "group", unit: "concurrency", limit: 1, reportOnly: true },
    ],
  },
};

function customer(
  keyId: string,
  groupName: string,
  { budget, limits = [] }: { budget?: Budget; limits?: readonly Limit[] } = {},
): Customer {
  const found = GROUPS[groupName];
  if (found === undefined) throw new RangeError(`Cannot make a customer: there is no group "${groupName}"`);
  const caller = {
    keyId,
    keyName: keyId,
    groupName,
    group: found.rules,
    rules: budget === undefined ? {} : { budget },
  };
  return {
    keyId,
    group: groupName,
    millionths: found.millionths,
    factor: found.rules.price_factor,
    claims(ware, tokens) {
      const names = { key: keyId, group: groupName, model: ware.model.id };
      return [...found.limits, ...limits, ...ware.limits].map(({ of, unit, limit, reportOnly = false }) => ({
        name: `${of}:${names[of]}`,
        unit,
        limit,
        cost: unit === "tokens" ? Math.min(tokens, limit) : 1,
        reportOnly,
      }));
    },
    budgets: (now) => budgetClaims(caller, { user: undefined, arrivedAt: now }),
  };
}

/** Keys without rules, with budgets, limits, both, and an empty budget. */
export const CUSTOMERS: readonly Customer[] = [
  customer("key_open", "open"),
  customer("key_b1", "budget"),
  customer("key_b2", "budget"),
  customer("key_b3", "budget", {
    budget: { usd: "0.0003", period: "week" },
    limits: [{ of: "key", unit: "concurrency", limit: 3 }],
  }),
  customer("key_none", "open", { budget: { usd: "0", period: "total" } }),
  customer("key_l1", "limited"),
  customer("key_l2", "limited", { budget: { usd: "0.0008", period: "day" } }),
  customer("key_watched", "watched", { budget: { usd: "1000", period: "month" } }),
  customer("key_digits", "digits", { budget: { usd: "9000.000000000001", period: "day" } }),
];

/** Prices of a ware at a moment. */
function picosAt({ periods }: Ware, now: number): Picos {
  const found = periods.filter(({ from }) => from <= now).at(-1);
  if (found === undefined) throw new RangeError("Cannot price: the moment is before all time");
  return found.picos;
}

/** The cost of tokens for a customer, computed independently of the tested code. */
export function costBy(picos: Picos, { tokens, millionths }: { tokens: BilledTokens; millionths: bigint }): bigint {
  const sum = BigInt(tokens.prompt) * picos.prompt + BigInt(tokens.input_cache_read) * picos.input_cache_read +
    BigInt(tokens.input_cache_write_5m) * picos.input_cache_write_5m +
    BigInt(tokens.input_cache_write_1h) * picos.input_cache_write_1h + BigInt(tokens.completion) * picos.completion;
  return sum * millionths / MILLION;
}

const MILLION = 1_000_000n;

/** True if a customer's prices of a model have at most 12 decimals, which the configuration requires. */
function isSold({ periods }: Ware, { millionths }: Customer): boolean {
  return periods.every(({ picos }) => Object.values(picos).every((price) => price * millionths % MILLION === 0n));
}

/** The prices that a customer's request pays. */
export function sheetOf({ model }: Ware, { customer, at }: { customer: Customer; at: number }): PriceSheet {
  return pricesAt(model, { factor: customer.factor, now: at }).sheet;
}

/** Tokens of an answer that the gateway reckons with. Upstreams may not care. */
const MAX_COMPLETION = 120;
/** Smallest number of output tokens that a request asks for. */
const MIN_COMPLETION = 10;

/** A request of a customer, for anything. */
export function arrivalOf(customer: Customer, { random, at }: { random: Random; at: number }): Arriving {
  const sold = WARES.filter((ware) => isSold(ware, customer));
  const ware = random.pick(sold);
  const prompt = 1 + random.below(200);
  const picos = picosAt(ware, at);
  const others: AnsweringModel[] = Array.from(
    { length: random.chance(0.3) ? 1 + random.below(2) : 0 },
    () => random.pick(sold),
  )
    .map((ware) => ({ ware, picos: picosAt(ware, at) }));
  const dearest = (completion: number) => {
    const tokens = { ...tokensOf(0, completion), input_cache_write_1h: prompt + 10 };
    const costs = [picos, ...others.map((other) => other.picos)]
      .map((prices) => costBy(prices, { tokens, millionths: customer.millionths }));
    return costs.reduce((most, cost) => cost > most ? cost : most);
  };
  const endpoint = random.pick(["chat", "responses", "messages", "images.generations"] as const);
  const repeats = endpoint === "images.generations" && random.chance(0.2);
  const most = repeats ? 0n : dearest(MAX_COMPLETION);
  const isGreedy = random.chance(0.3);
  // The largest affordable answer for a request without a maximum; the smallest if unaffordable. Some use the whole
  // rest exactly.
  const within = (left: bigint) => {
    if (isGreedy && left >= dearest(MIN_COMPLETION)) return left;
    for (let completion = MAX_COMPLETION; completion > MIN_COMPLETION; completion -= MIN_COMPLETION) {
      if (dearest(completion) <= left) return dearest(completion);
    }
    return dearest(MIN_COMPLETION);
  };
  return {
    customer,
    ware,
    others,
    endpoint,
    picos,
    at,
    most,
    ...(!repeats && random.chance(0.3) && { within }),
    repeats,
    drains: random.chance(0.1),
    forMs: 10_000 + random.below(120_000),
    claims: repeats ? [] : customer.claims(ware, prompt + MAX_COMPLETION),
    budgets: customer.budgets(at),
    prompt,
  };
}
