/** Prices: which of them a request pays, and what its tokens cost. */
import type { Model } from "../catalog/model.ts";
import type { Pricing, TieredPrices, TokenPrices } from "../catalog/price_schema.ts";
import { pricingAt } from "../catalog/pricing.ts";
import type { BilledExtra, BilledTokens, PriceSheet } from "../store/ledger.ts";
import { type Amount, parseFactor, parseUsd, timesFactor } from "./money.ts";

/** Classes of the input that have a price of their own, in the catalog's words. */
export const INPUT_CLASSES = ["prompt", "input_cache_read", "input_cache_write_5m", "input_cache_write_1h"] as const;

/** Classes of tokens that have a price of their own. */
export const PRICE_CLASSES = [...INPUT_CLASSES, "completion"] as const;

/** A class of tokens with a price of its own. */
export type PriceClass = typeof PRICE_CLASSES[number];

/** Prices of one token of each class. */
export type UnitPrices = Readonly<Record<PriceClass, Amount>>;

/** Sheets by the prices they were made of, then by factor: neither changes while the gateway runs. */
const sheets = new WeakMap<object, Map<string, Readonly<PriceSheet>>>();

/** Prices that were read from frozen sheets. What may still change is read anew each time. */
const read = new WeakMap<PriceSheet, UnitPrices>();

/** The price sheet of a request that begins now, by its model and its group's factor. It is frozen and shared. */
export function sheetAt(model: Model, { factor, now }: { factor: string; now: number }): Readonly<PriceSheet> {
  return sheetOf(pricingAt(model, now), { model: model.id, factor });
}

/** The model and the factor of sheets. */
type SheetOf = Pick<PriceSheet, "model" | "factor">;

/** The sheet of prices. It is frozen and shared. */
export function sheetOf(pricing: TokenPrices, { model, factor }: SheetOf): Readonly<PriceSheet> {
  let byFactor = sheets.get(pricing);
  if (byFactor === undefined) sheets.set(pricing, byFactor = new Map());
  let sheet = byFactor.get(factor);
  // Rows that were made of one another share their prices, and not their ids.
  if (sheet?.model !== model) {
    const { prompt, completion, input_cache_read, input_cache_write_5m, input_cache_write_1h } = pricing;
    const classes = { prompt, completion, input_cache_read, input_cache_write_5m, input_cache_write_1h };
    byFactor.set(factor, sheet = Object.freeze({ model, factor, ...classes }));
  }
  return sheet;
}

/** A sheet for requests with more tokens of input than `above`. */
export interface ContextSheet {
  above: number;
  sheet: Readonly<PriceSheet>;
}

/** Sheets by the size of the input, in ascending order; the first is for every size. */
export type ContextSheets = readonly [ContextSheet, ...ContextSheet[]];

/** Prices beside the plain sheet. */
export interface ExtraPrices {
  /** Prices outside of service tiers. */
  plain: ContextSheets;
  /** Prices in service tiers, by name. */
  tiers: ReadonlyMap<string, ContextSheets>;
  /** The dearest price that each class has in any tier that an input of the size can reach. */
  dearest: ContextSheets;
  /** USD per call of hosted tools, by name. */
  hostedTools: Readonly<Record<string, string>>;
  /** Name of the time window of these prices; absent: the usual ones. */
  window?: string;
}

/** Prices beside the plain sheet for a request that begins now; absent: none. */
export function extraPricesAt(
  model: Model,
  { factor, now }: { factor: string; now: number },
): ExtraPrices | undefined {
  return extraPricesOf(pricingAt(model, now), { model: model.id, factor });
}

/** The prices beside the plain sheet; absent: none. They are shared. */
export function extraPricesOf(pricing: Pricing, of: SheetOf): ExtraPrices | undefined {
  const { hosted_tools, service_tiers, context_tiers, window } = pricing;
  if ((hosted_tools ?? service_tiers ?? context_tiers ?? window) === undefined) return undefined;
  let known = extraPrices.get(pricing);
  if (known === undefined) extraPrices.set(pricing, known = new Map());
  const name = `${of.factor} ${of.model}`;
  let prices = known.get(name);
  if (prices === undefined) known.set(name, prices = createExtraPrices(pricing, of));
  return prices;
}

/** As `sheets`, by factor and model. */
const extraPrices = new WeakMap<Pricing, Map<string, ExtraPrices>>();

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
    { above: 0, sheet: sheetOf(prices, of) },
    ...context_tiers.map((tier) => ({ above: tier.above, sheet: sheetOf(tier, of) })),
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

/** The sheet for an input of a size. */
export function sheetFor(sheets: ContextSheets, inputTokens: number): Readonly<PriceSheet> {
  return (sheets.findLast(({ above }) => inputTokens > above) ?? sheets[0]).sheet;
}

/** For each class the higher price of two sheets. */
function dearer(first: Readonly<PriceSheet>, second: Readonly<PriceSheet>): Readonly<PriceSheet> {
  const sheet = { ...first };
  for (const name of PRICE_CLASSES) {
    if (parseUsd(second[name]) > parseUsd(first[name])) sheet[name] = second[name];
  }
  return Object.freeze(sheet);
}

/**
 * The price of one token of every class: the catalog's, times the group's factor. Exact. Of a frozen sheet it is worked
 * out once.
 * @throws {RangeError} for a sheet with a price that has more than 12 decimals; the configuration was checked for it
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

/** All tokens of the input: what the thresholds of context tiers count. */
export function inputTokensOf(tokens: BilledTokens): number {
  return INPUT_CLASSES.reduce((sum, name) => sum + tokens[name], 0);
}

/** The price of one token of a class, as `unitPrices` has it. */
export function unitPrice(sheet: Readonly<PriceSheet>, name: PriceClass): Amount {
  return unitPrices(sheet)[name];
}

/**
 * What tokens cost: for each class, tokens times price. Exact.
 * @throws {RangeError} for a count that is none
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
 * What is billed beside tokens: for each, its count times its price, times the factor of the sheet. Exact.
 * @throws {RangeError} for a count or a price that is none
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
