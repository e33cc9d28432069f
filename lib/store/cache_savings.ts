/** Savings by a token of each cache class, at the prices of a sheet. */
import { parseFactor, parseUsd, timesFactor } from "../billing/money.ts";
import type { PriceSheet } from "./ledger.ts";

/** Classes of cached tokens. */
const CACHE_CLASSES = ["input_cache_read", "input_cache_write_5m", "input_cache_write_1h"] as const;

/**
 * The difference of the prices of a prompt token and of a token of each cache class, in 1e-12 USD; negative where the
 * class is dearer.
 * @throws {RangeError} for a price with more than 12 decimals
 */
export function cacheSavings(sheet: Readonly<PriceSheet>): bigint[] {
  const factor = parseFactor(sheet.factor);
  const unit = (price: string) => timesFactor(parseUsd(price), factor);
  return CACHE_CLASSES.map((name) => unit(sheet.prompt) - unit(sheet[name]));
}
