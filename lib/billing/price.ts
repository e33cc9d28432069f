/** Finds the prices of a request, validates the reported usage, and computes the cost and the customer's charge. */
import type { Model } from "../catalog/model.ts";
import type { Pricing, TieredPrices, TokenPrices } from "../catalog/price_schema.ts";
import { pricingAt } from "../catalog/catalog.ts";
import type { BilledExtra, BilledTokens, PriceSheet } from "../store/ledger.ts";
import { type Amount, parseFactor, parseUsd, timesFactor } from "./money.ts";
import type { TokenUsage } from "../protocols/canonical/types.ts";

/** Classes of input tokens with a price of their own, named as in the catalog. */
export const INPUT_CLASSES = ["prompt", "input_cache_read", "input_cache_write_5m", "input_cache_write_1h"] as const;

/** All classes of tokens with a price of their own. */
export const PRICE_CLASSES = [...INPUT_CLASSES, "completion"] as const;

/** A class of tokens with a price of its own. */
export type PriceClass = typeof PRICE_CLASSES[number];

/** Prices of one token of each class. */
export type UnitPrices = Readonly<Record<PriceClass, Amount>>;

/**
 * Cached prices by pricing, factor and model id: models that are derived from one another share a pricing object. All
 * of these are immutable.
 */
const cachedPrices = new WeakMap<Pricing, Map<string, Map<string, RequestPrices>>>();

/** Parsed prices of frozen sheets. Other sheets are parsed each time. */
const parsedSheets = new WeakMap<PriceSheet, UnitPrices>();

/** The prices of a request. */
export interface RequestPrices {
  /** Frozen and shared. */
  sheet: Readonly<PriceSheet>;
  /** Prices in addition to those of the sheet; undefined: there are none. */
  extraPrices: ExtraPrices | undefined;
}

/**
 * Returns the prices of a model at a moment.
 * @param options `factor`: the price factor of the key's group; `now`: Unix time in milliseconds
 */
export function pricesAt(model: Model, { factor, now }: { factor: string; now: number }): RequestPrices {
  return pricesOf(pricingAt(model, now), { model: model.id, factor });
}

/** Returns the prices of a request by a model's pricing. The result is cached, shared and immutable. */
export function pricesOf(pricing: Pricing, scope: SheetScope): RequestPrices {
  let byFactor = cachedPrices.get(pricing);
  if (byFactor === undefined) cachedPrices.set(pricing, byFactor = new Map());
  let byModel = byFactor.get(scope.factor);
  if (byModel === undefined) byFactor.set(scope.factor, byModel = new Map());
  let prices = byModel.get(scope.model);
  if (prices === undefined) byModel.set(scope.model, prices = createPrices(pricing, scope));
  return prices;
}

/** The subject of a sheet: the id of a model, and the price factor of a group. */
type SheetScope = Pick<PriceSheet, "model" | "factor">;

function createPrices(pricing: Pricing, scope: SheetScope): RequestPrices {
  const { hosted_tools, service_tiers, context_tiers, window } = pricing;
  const isPlain = (hosted_tools ?? service_tiers ?? context_tiers ?? window) === undefined;
  return { sheet: createSheet(pricing, scope), extraPrices: isPlain ? undefined : createExtraPrices(pricing, scope) };
}

/** Creates the price sheet for these prices. It is frozen, because requests share it. */
function createSheet(
  { prompt, completion, input_cache_read, input_cache_write_5m, input_cache_write_1h }: TokenPrices,
  { model, factor }: SheetScope,
): Readonly<PriceSheet> {
  const classes = { prompt, completion, input_cache_read, input_cache_write_5m, input_cache_write_1h };
  return Object.freeze({ model, factor, ...classes });
}

/** A price sheet for requests with more than `above` input tokens. */
export interface ContextSheet {
  above: number;
  sheet: Readonly<PriceSheet>;
}

/** Sheets by input size, in ascending order; the first applies to every size. */
export type ContextSheets = readonly [ContextSheet, ...ContextSheet[]];

/** Prices in addition to those of the plain sheet. */
export interface ExtraPrices {
  /** Prices without a service tier. */
  plain: ContextSheets;
  /** Prices of service tiers, by name. */
  tiers: ReadonlyMap<string, ContextSheets>;
  /** The highest price of each class in any tier that an input of this size can be billed at. */
  dearest: ContextSheets;
  /** USD per call of hosted tools, by name. */
  hostedTools: Readonly<Record<string, string>>;
  /** Name of the time window of these prices; absent: outside all windows. */
  window?: string;
}

function createExtraPrices(pricing: Pricing, scope: SheetScope): ExtraPrices {
  const { hosted_tools: hostedTools = {}, service_tiers = {}, window } = pricing;
  const plain = contextSheets(pricing, scope);
  const tiers = new Map(Object.entries(service_tiers).map(([name, prices]) => [name, contextSheets(prices, scope)]));
  const dearest = dearestSheets([plain, ...tiers.values()]);
  return { plain, tiers, dearest, hostedTools, ...(window !== undefined && { window }) };
}

function contextSheets(prices: TieredPrices, scope: SheetScope): ContextSheets {
  const { context_tiers = [] } = prices;
  return [
    { above: 0, sheet: createSheet(prices, scope) },
    ...context_tiers.map((tier) => ({ above: tier.above, sheet: createSheet(tier, scope) })),
  ];
}

/**
 * Returns the highest price of each class by input size. The final input may be smaller than expected, so prices
 * below a threshold count above it, too.
 */
function dearestSheets(all: readonly ContextSheets[]): ContextSheets {
  const [first, ...others] = all.flat().sort((one, other) => one.above - other.above);
  if (first === undefined) throw new TypeError("Cannot compare no sheets");
  const levels: [ContextSheet, ...ContextSheet[]] = [first];
  let dearest = first.sheet;
  for (const { above, sheet } of others) {
    dearest = higherPrices(dearest, sheet);
    if (levels.at(-1)?.above === above) levels.pop();
    levels.push({ above, sheet: dearest });
  }
  return levels;
}

/** Returns the sheet for an input of this size. */
export function sheetFor(sheets: ContextSheets, inputTokens: number): Readonly<PriceSheet> {
  return (sheets.findLast(({ above }) => inputTokens > above) ?? sheets[0]).sheet;
}

/** Returns a sheet with the higher price of two sheets for each class. */
function higherPrices(first: Readonly<PriceSheet>, second: Readonly<PriceSheet>): Readonly<PriceSheet> {
  const sheet = { ...first };
  for (const name of PRICE_CLASSES) {
    if (parseUsd(second[name]) > parseUsd(first[name])) sheet[name] = second[name];
  }
  return Object.freeze(sheet);
}

/**
 * Returns the exact price of one token of every class: the catalog's price times the group's factor. Cached for frozen
 * sheets.
 * @throws {RangeError} for a price with more than 12 decimals, which the configuration check rejects
 */
export function unitPrices(sheet: Readonly<PriceSheet>): UnitPrices {
  const cached = parsedSheets.get(sheet);
  if (cached !== undefined) return cached;
  const factor = parseFactor(sheet.factor);
  const price = (name: PriceClass) => timesFactor(parseUsd(sheet[name]), factor);
  const prices = {
    prompt: price("prompt"),
    input_cache_read: price("input_cache_read"),
    input_cache_write_5m: price("input_cache_write_5m"),
    input_cache_write_1h: price("input_cache_write_1h"),
    completion: price("completion"),
  };
  if (Object.isFrozen(sheet)) parsedSheets.set(sheet, prices);
  return prices;
}

/** Upper bounds of input and output tokens. */
export interface TokenBound {
  input: number;
  /** Tokens of all answers of the request together. */
  output: number;
}

/** Returns the exact highest cost of these tokens: with all input in its most expensive class. */
export function costBound({ input, output }: TokenBound, sheet: Readonly<PriceSheet>): Amount {
  return BigInt(input) * highestInputPrice(sheet) + BigInt(output) * unitPrices(sheet).completion;
}

/** Returns the price of an input token in its most expensive class. */
export function highestInputPrice(sheet: Readonly<PriceSheet>): Amount {
  const prices = unitPrices(sheet);
  let highest = 0n;
  for (const name of INPUT_CLASSES) {
    if (prices[name] > highest) highest = prices[name];
  }
  return highest;
}

/** Returns whether any token has a price above 0. */
export function costsAnything(sheet: Readonly<PriceSheet>): boolean {
  const prices = unitPrices(sheet);
  for (const name of PRICE_CLASSES) if (prices[name] > 0n) return true;
  return false;
}

/** Returns the exact cost of tokens: for each class, tokens times price. @throws {RangeError} for an invalid count */
export function costOfTokens(tokens: BilledTokens, sheet: Readonly<PriceSheet>): Amount {
  const prices = unitPrices(sheet);
  let cost = 0n;
  for (const name of PRICE_CLASSES) {
    const count = tokens[name];
    if (count === 0) continue;
    if (!Number.isSafeInteger(count) || count < 0) throw new RangeError(`Cannot charge ${count} tokens`);
    cost += BigInt(count) * prices[name];
  }
  return cost;
}

/**
 * Returns the exact cost of extras: for each, count times price times the sheet's factor.
 * @throws {RangeError} for an invalid count or price
 */
export function costOfExtras(extras: readonly BilledExtra[], { factor }: Pick<PriceSheet, "factor">): Amount {
  const parsedFactor = parseFactor(factor);
  let cost = 0n;
  for (const { count, price } of extras) {
    if (!Number.isSafeInteger(count) || count < 0) throw new RangeError(`Cannot charge ${count} of anything`);
    cost += BigInt(count) * timesFactor(parseUsd(price), parsedFactor);
  }
  return cost;
}

/** Larger counts of one class are implausible: no model reads or writes as many tokens in one request. */
const MAX_PLAUSIBLE_TOKENS = 1_000_000_000;

/** The plausible part of the usage that an upstream reported. */
export interface UsageReading {
  /** Reported tokens; 0 where none, or no plausible number, was reported. */
  tokens: BilledTokens;
  /** Classes to count: `prompt` for the input, `completion` and `reasoning` for the output. */
  missing: { input: boolean; output: boolean };
  /** True if the gateway itself has counted or estimated some of it; false if none. */
  counted: NonNullable<TokenUsage["counted"]> | false;
}

/**
 * Validates reported usage: whole numbers up to 1,000,000,000. Anything else is absurd and counts as missing. So does
 * an input of 0 tokens, caches included: every prompt has tokens, and some hosts report 0 if they do not know the
 * number.
 *
 * Cache classes are 0 when missing, since their tokens are then part of `prompt`. If one of them is absurd, the split
 * of `prompt` is unknown, so the whole input is missing. Reasoning above the completion that contains it is absurd; it
 * has no price of its own, so it becomes 0 and nothing is missing.
 */
export function readUsage(usage: TokenUsage): UsageReading {
  const isInputPlausible = usage.prompt !== undefined && isPlausible(usage.prompt) &&
    isPlausible(usage.input_cache_read) && isPlausible(usage.input_cache_write_5m) &&
    isPlausible(usage.input_cache_write_1h);
  const { prompt = 0, input_cache_read = 0, input_cache_write_5m = 0, input_cache_write_1h = 0 } = isInputPlausible
    ? usage
    : {};
  const completion = isPlausible(usage.completion) ? usage.completion : undefined;
  const { reasoning = 0 } = usage;
  return {
    tokens: {
      prompt,
      input_cache_read,
      input_cache_write_5m,
      input_cache_write_1h,
      completion: completion ?? 0,
      reasoning: completion !== undefined && isPlausible(reasoning) && reasoning <= completion ? reasoning : 0,
    },
    missing: {
      input: prompt + input_cache_read + input_cache_write_5m + input_cache_write_1h === 0,
      output: completion === undefined,
    },
    counted: usage.counted ?? false,
  };
}

/**
 * Returns whether a model can have read or written this number of tokens in one request; true if the number is unknown.
 */
function isPlausible(count = 0): boolean {
  return Number.isSafeInteger(count) && count >= 0 && count <= MAX_PLAUSIBLE_TOKENS;
}

/** The charge of a request. */
export interface Charge {
  /** Amount that the customer pays. */
  cost: Amount;
  /** Cost beyond the held amount, paid by the operator. */
  overrun: Amount;
}

/**
 * Computes the charge for tokens and for extras that are billed besides them.
 * @param held amount held for the request, the most that the customer pays; 0: no budget applies, so the customer pays
 * the whole cost
 */
export function computeCharge(
  { tokens, sheet, extras, held }: {
    tokens: BilledTokens;
    sheet: Readonly<PriceSheet>;
    extras?: readonly BilledExtra[] | undefined;
    held: Amount;
  },
): Charge {
  let cost = costOfTokens(tokens, sheet);
  if (extras !== undefined) cost += costOfExtras(extras, sheet);
  if (held === 0n || cost <= held) return { cost, overrun: 0n };
  return { cost: held, overrun: cost - held };
}
