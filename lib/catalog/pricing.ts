/** Finds the prices of a model at a point in time. */
import type { Model, Pricing } from "./model.ts";

/** Finds the prices at `now` (Unix milliseconds): those of the last change that has begun, or else the row's own. */
export function pricingAt({ pricing, price_changes }: Pick<Model, "pricing" | "price_changes">, now: number): Pricing {
  return price_changes.findLast(({ from }) => from <= now) ?? pricing;
}
