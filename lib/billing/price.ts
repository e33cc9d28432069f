/** The prices of a request, and its charge: the customer's share of the cost of plausible token counts. */
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

/** Cached prices by pricing, factor and model: models derived from one another share a pricing. All are immutable. */
const requestPrices = new WeakMap<Pricing, Map<string, Map<string, RequestPrices>>>();

/** Parsed prices of frozen sheets. Other sheets are parsed each time. */
const read = new WeakMap<PriceSheet, UnitPrices>();

/** The prices of a request. */
export interface RequestPrices {
  /** Frozen and shared. */
  sheet: Readonly<PriceSheet>;
  /** Prices in addition to the plain sheet; absent: none. */
  extraPrices: ExtraPrices | undefined;
}

/** The prices at a moment, in Unix milliseconds, for a model and its group's factor. */
export function pricesAt(model: Model, { factor, now }: { factor: string; now: number }): RequestPrices {
  return pricesOf(pricingAt(model, now), { model: model.id, factor });
}

/** The prices of a pricing. Shared. */
export function pricesOf(pricing: Pricing, of: SheetOf): RequestPrices {
  let byFactor = requestPrices.get(pricing);
  if (byFactor === undefined) requestPrices.set(pricing, byFactor = new Map());
  let byModel = byFactor.get(of.factor);
  if (byModel === undefined) byFactor.set(of.factor, byModel = new Map());
  let prices = byModel.get(of.model);
  if (prices === undefined) byModel.set(of.model, prices = createPrices(pricing, of));
  return prices;
}

/** The model and the factor of a sheet. */
type SheetOf = Pick<PriceSheet, "model" | "factor">;

function createPrices(pricing: Pricing, of: SheetOf): RequestPrices {
  const { hosted_tools, service_tiers, context_tiers, window } = pricing;
  const isPlain = (hosted_tools ?? service_tiers ?? context_tiers ?? window) === undefined;
  return { sheet: createSheet(pricing, of), extraPrices: isPlain ? undefined : createExtraPrices(pricing, of) };
}

/** The price sheet for these prices. Frozen: requests share it. */
function createSheet(
  { prompt, completion, input_cache_read, input_cache_write_5m, input_cache_write_1h }: TokenPrices,
  { model, factor }: SheetOf,
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

/** Prices in addition to the plain sheet. */
export interface ExtraPrices {
  /** Prices without a service tier. */
  plain: ContextSheets;
  /** Prices of service tiers, by name. */
  tiers: ReadonlyMap<string, ContextSheets>;
  /** The highest price of each class in any tier that an input of this size can reach. */
  dearest: ContextSheets;
  /** USD per call of hosted tools, by name. */
  hostedTools: Readonly<Record<string, string>>;
  /** Name of the time window of these prices; absent: outside all windows. */
  window?: string;
}

function createExtraPrices(pricing: Pricing, of: SheetOf): ExtraPrices {
  const { hosted_tools: hostedTools = {}, service_tiers = {}, window } = pricing;
  const plain = contextSheets(pricing, of);
  const tiers = new Map(Object.entries(service_tiers).map(([name, prices]) => [name, contextSheets(prices, of)]));
  const dearest = dearestSheets([plain, ...tiers.values()]);
  return { plain, tiers, dearest, hostedTools, ...(window !== undefined && { window }) };
}

function contextSheets(prices: TieredPrices, of: SheetOf): ContextSheets {
  const { context_tiers = [] } = prices;
  return [
    { above: 0, sheet: createSheet(prices, of) },
    ...context_tiers.map((tier) => ({ above: tier.above, sheet: createSheet(tier, of) })),
  ];
}

/** The final input may be smaller, so prices below a threshold count as well. */
function dearestSheets(all: readonly ContextSheets[]): ContextSheets {
  const [first, ...others] = all.flat().sort((one, other) => one.above - other.above);
  if (first === undefined) throw new TypeError("Cannot compare no sheets");
  const levels: [ContextSheet, ...ContextSheet[]] = [first];
  let dearest = first.sheet;
  for (const { above, sheet } of others) {
    dearest = dearer(dearest, sheet);
    if (levels.at(-1)?.above === above) levels.pop();
    levels.push({ above, sheet: dearest });
  }
  return levels;
}

/** The sheet for an input of this size. */
export function sheetFor(sheets: ContextSheets, inputTokens: number): Readonly<PriceSheet> {
  return (sheets.findLast(({ above }) => inputTokens > above) ?? sheets[0]).sheet;
}

/** The higher price of two sheets, for each class. */
function dearer(first: Readonly<PriceSheet>, second: Readonly<PriceSheet>): Readonly<PriceSheet> {
  const sheet = { ...first };
  for (const name of PRICE_CLASSES) {
    if (parseUsd(second[name]) > parseUsd(first[name])) sheet[name] = second[name];
  }
  return Object.freeze(sheet);
}

/**
 * The exact price of one token of every class: the catalog's times the group's factor. Cached for frozen sheets.
 * @throws {RangeError} for a price with more than 12 decimals, which the configuration check rejects
 */
export function unitPrices(sheet: Readonly<PriceSheet>): UnitPrices {
  const known = read.get(sheet);
  if (known !== undefined) return known;
  const factor = parseFactor(sheet.factor);
  const price = (name: PriceClass) => timesFactor(parseUsd(sheet[name]), factor);
  const prices = {
    prompt: price("prompt"),
    input_cache_read: price("input_cache_read"),
    input_cache_write_5m: price("input_cache_write_5m"),
    input_cache_write_1h: price("input_cache_write_1h"),
    completion: price("completion"),
  };
  if (Object.isFrozen(sheet)) read.set(sheet, prices);
  return prices;
}

/** Returns whether any token has a price above 0. */
export function costsAnything(sheet: Readonly<PriceSheet>): boolean {
  const prices = unitPrices(sheet);
  for (const name of PRICE_CLASSES) if (prices[name] > 0n) return true;
  return false;
}

/** All input tokens: the number that context tiers compare. */
export function inputTokensOf(tokens: BilledTokens): number {
  return INPUT_CLASSES.reduce((sum, name) => sum + tokens[name], 0);
}

/** The price of one token of a class, as in `unitPrices`. */
export function unitPrice(sheet: Readonly<PriceSheet>, name: PriceClass): Amount {
  return unitPrices(sheet)[name];
}

/**
 * The exact cost of tokens: for each class, tokens times price.
 * @throws {RangeError} for an invalid count
 */
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
 * The exact cost of extras: for each, count times price times the sheet's factor.
 * @throws {RangeError} for an invalid count or price
 */
export function costOfExtras(extras: readonly BilledExtra[], { factor }: Pick<PriceSheet, "factor">): Amount {
  const times = parseFactor(factor);
  let cost = 0n;
  for (const { count, price } of extras) {
    if (!Number.isSafeInteger(count) || count < 0) throw new RangeError(`Cannot charge ${count} of anything`);
    cost += BigInt(count) * timesFactor(parseUsd(price), times);
  }
  return cost;
}

/** Larger counts of one class are implausible: no model reads or writes as many tokens in one request. */
const MAX_TOKENS = 1_000_000_000;

/** The plausible part of the usage that an upstream reported. */
export interface UsageReading {
  /** Reported tokens; 0 where none, or no plausible number, was reported. */
  tokens: BilledTokens;
  /** Classes to count: `prompt` for the input, `completion` and `reasoning` for the output. */
  missing: { input: boolean; output: boolean };
  /** True if the gateway has counted or estimated some of it already. */
  counted: NonNullable<TokenUsage["counted"]> | false;
  /** Classes whose reported count is impossible, for the log. */
  absurd: BilledClass[];
}

type BilledClass = keyof BilledTokens;

/**
 * Validates reported usage: whole numbers up to 1,000,000,000. Anything else is absurd and counts as missing, and so
 * does an input of zero tokens with its caches: every prompt has some, and some hosts report 0 for unknown.
 *
 * Cache classes are 0 when missing, since their tokens are then part of `prompt`. If one of them is absurd, the split
 * of `prompt` is unknown, so the whole input is missing. Reasoning above the completion that contains it is absurd; it
 * has no price of its own, so it becomes 0 and nothing is missing.
 */
export function readUsage(usage: TokenUsage): UsageReading {
  const absurd: BilledClass[] = [];
  const read = (name: BilledClass, max = MAX_TOKENS): number | undefined => {
    const count = usage[name];
    if (count === undefined) return undefined;
    if (Number.isSafeInteger(count) && count >= 0 && count <= max) return count;
    absurd.push(name);
    return undefined;
  };
  const prompt = read("prompt");
  const input_cache_read = read("input_cache_read") ?? 0;
  const input_cache_write_5m = read("input_cache_write_5m") ?? 0;
  const input_cache_write_1h = read("input_cache_write_1h") ?? 0;
  const cached = input_cache_read + input_cache_write_5m + input_cache_write_1h;
  const isInputReported = prompt !== undefined && absurd.length === 0 && prompt + cached > 0;
  const completion = read("completion");
  const reasoning = completion === undefined ? 0 : read("reasoning", completion) ?? 0;
  return {
    tokens: {
      prompt: isInputReported ? prompt : 0,
      input_cache_read: isInputReported ? input_cache_read : 0,
      input_cache_write_5m: isInputReported ? input_cache_write_5m : 0,
      input_cache_write_1h: isInputReported ? input_cache_write_1h : 0,
      completion: completion ?? 0,
      reasoning,
    },
    missing: { input: !isInputReported, output: completion === undefined },
    counted: usage.counted ?? false,
    absurd,
  };
}

/** The charge of a request. */
export interface Charge {
  /** Amount that the customer pays. */
  cost: Amount;
  /** Cost beyond the held amount, paid by the operator. */
  overrun: Amount;
}

/**
 * Computes the charge for tokens and for extras billed beside them.
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
