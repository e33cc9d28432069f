/** Prices: which of them a request pays, and what its tokens cost. */
import type { Model, Pricing } from "../catalog/model.ts";
import type { BilledTokens, PriceSheet } from "../store/ledger.ts";
import { type Amount, parseFactor, parseUsd, timesFactor } from "./money.ts";

/** Classes of tokens that have a price of their own, in the catalog's words. */
export const PRICE_CLASSES = [
  "prompt",
  "input_cache_read",
  "input_cache_write_5m",
  "input_cache_write_1h",
  "completion",
] as const;

/** A class of tokens with a price of its own. */
export type PriceClass = typeof PRICE_CLASSES[number];

/** Prices in force at a moment, in Unix milliseconds: the last change that has begun, else the row's own. */
export function pricingAt({ pricing, price_changes }: Pick<Model, "pricing" | "price_changes">, now: number): Pricing {
  const change = price_changes.findLast(({ from }) => from <= now);
  if (change === undefined) return pricing;
  const { from: _, ...changed } = change;
  return changed;
}

/** What a request that begins now pays, by its model and the factor of its group. */
export function sheetAt(model: Model, { factor, now }: { factor: string; now: number }): PriceSheet {
  return { model: model.id, factor, ...pricingAt(model, now) };
}

/**
 * The price of one token of a class: the catalog's, times the group's factor. Exact.
 * @throws {RangeError} where the product has more than 12 decimals; the configuration was checked for it
 */
export function unitPrice(sheet: PriceSheet, name: PriceClass): Amount {
  return timesFactor(parseUsd(sheet[name]), parseFactor(sheet.factor));
}

/** What tokens cost: for each class, tokens times price. Exact. */
export function costOfTokens(tokens: BilledTokens, sheet: PriceSheet): Amount {
  let cost = 0n;
  for (const name of PRICE_CLASSES) {
    if (tokens[name] > 0) cost += BigInt(tokens[name]) * unitPrice(sheet, name);
  }
  return cost;
}
