/** Prices: which of them a request pays, and what its tokens cost. */
import type { Model, Pricing } from "../catalog/model.ts";
import { pricingAt } from "../catalog/pricing.ts";
import type { BilledTokens, PriceSheet } from "../store/ledger.ts";
import { type Amount, parseFactor, parseUsd, timesFactor } from "./money.ts";

/** Classes of the input that have a price of their own, in the catalog's words. */
export const INPUT_CLASSES = ["prompt", "input_cache_read", "input_cache_write_5m", "input_cache_write_1h"] as const;

/** Classes of tokens that have a price of their own. */
export const PRICE_CLASSES = [...INPUT_CLASSES, "completion"] as const;

/** A class of tokens with a price of its own. */
export type PriceClass = typeof PRICE_CLASSES[number];

/** What one token of each class costs. */
export type UnitPrices = Readonly<Record<PriceClass, Amount>>;

/** Sheets by the prices they were made of, then by factor: neither changes while the gateway runs. */
const sheets = new WeakMap<Pricing, Map<string, Readonly<PriceSheet>>>();

/** Prices that were read from frozen sheets. What may still change is read anew each time. */
const read = new WeakMap<PriceSheet, UnitPrices>();

/** What a request that begins now pays, by its model and the factor of its group. The sheet is frozen, and shared. */
export function sheetAt(model: Model, { factor, now }: { factor: string; now: number }): Readonly<PriceSheet> {
  const pricing = pricingAt(model, now);
  let byFactor = sheets.get(pricing);
  if (byFactor === undefined) sheets.set(pricing, byFactor = new Map());
  let sheet = byFactor.get(factor);
  // Rows that were made of one another share their prices, and not their ids.
  if (sheet?.model !== model.id) {
    const { prompt, completion, input_cache_read, input_cache_write_5m, input_cache_write_1h } = pricing;
    const classes = { prompt, completion, input_cache_read, input_cache_write_5m, input_cache_write_1h };
    byFactor.set(factor, sheet = Object.freeze({ model: model.id, factor, ...classes }));
  }
  return sheet;
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
