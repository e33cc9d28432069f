/** Computes what a token of each cache class saves at the prices of a sheet. */
import { parseFactor, parseUsd, timesFactor } from "../billing/money.ts";
import type { PriceSheet } from "./ledger.ts";

const CACHE_CLASSES = ["input_cache_read", "input_cache_write_5m", "input_cache_write_1h"] as const;

/**
 * Returns, for each cache class, the price of a prompt token minus the price of a token of the class, in 1e-12 USD. A
 * difference is negative if tokens of the class cost more.
 * @throws {RangeError} for a price with more than 12 decimals
 */
export function cacheSavings(sheet: Readonly<PriceSheet>): bigint[] {
  const factor = parseFactor(sheet.factor);
  const priceOf = (price: string) => timesFactor(parseUsd(price), factor);
  return CACHE_CLASSES.map((name) => priceOf(sheet.prompt) - priceOf(sheet[name]));
}
