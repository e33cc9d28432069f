/** Finds the prices of a model at a moment. */
import type { Model } from "./model.ts";
import type { Pricing } from "./price_schema.ts";

const MINUTE_MS = 60_000;
const DAY_MINUTES = 1440;

/**
 * Finds the prices at `now` (Unix milliseconds): those of the last price change that has begun, else the row's own; of
 * these, the ones of the current time window.
 */
export function pricingAt({ pricing, price_changes }: Pick<Model, "pricing" | "price_changes">, now: number): Pricing {
  return windowAt(price_changes.findLast(({ from }) => from <= now) ?? pricing, now);
}

/** The prices of the time window that contains `now` (Unix milliseconds), else the prices outside all windows. */
export function windowAt(pricing: Pricing, now: number): Pricing {
  if (pricing.time_windows === undefined) return pricing;
  const minute = Math.floor(now / MINUTE_MS) % DAY_MINUTES;
  const found = pricing.time_windows.find(({ from, until }) =>
    from < until ? minute >= from && minute < until : minute >= from || minute < until
  );
  return found?.pricing ?? pricing;
}
