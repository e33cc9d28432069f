/** Which prices of a model are in force. */
import type { Model, Pricing } from "./model.ts";

/** Prices in force at a moment, in Unix milliseconds: those of the last change that has begun, else the row's own. */
export function pricingAt({ pricing, price_changes }: Pick<Model, "pricing" | "price_changes">, now: number): Pricing {
  return price_changes.findLast(({ from }) => from <= now) ?? pricing;
}
