/** Cost of a request at its upstream: the same tokens and calls, at the prices of the target. */
import type { Target } from "../catalog/model.ts";
import type { Pricing } from "../catalog/price_schema.ts";
import { windowAt } from "../catalog/catalog.ts";
import type { BilledExtra, BilledTokens } from "../store/ledger.ts";
import { billUsed, type UsedExtras } from "./extras.ts";
import type { Amount } from "./money.ts";
import { costOfExtras, costOfTokens, extraPricesOf, sheetOf } from "./price.ts";

/** Billed usage of a request. */
export interface BilledUsage {
  tokens: BilledTokens;
  used?: UsedExtras | undefined;
  /** Extras that do not depend on the upstream's report, such as uploaded images. */
  extras?: readonly BilledExtra[] | undefined;
}

/**
 * Cost at a target; absent: it has no prices. Items without a price cost nothing.
 * @param options `at`: arrival of the request, Unix time in milliseconds; `tier`: the requested service tier
 */
export function costAtTarget(
  { model, pricing }: Pick<Target, "model" | "pricing">,
  { tokens, used, extras = [] }: BilledUsage,
  { at, tier }: { at: number; tier?: string | undefined },
): Amount | undefined {
  if (pricing === undefined) return undefined;
  const prices = windowAt(pricing, at);
  const of = { model, factor: "1" };
  const { sheet, details } = billUsed(
    { used, tokens },
    { sheet: sheetOf(prices, of), extraPrices: extraPricesOf(prices, of), tier },
  );
  const others = extras.map((extra) => ({ ...extra, price: priceOfItem(prices, extra) }));
  return costOfTokens(tokens, sheet) + costOfExtras([...others, ...details?.extras ?? []], sheet);
}

function priceOfItem(prices: Pick<Pricing, "input_image" | "request">, { item }: BilledExtra): string {
  return (item === "input_image" || item === "request" ? prices[item] : undefined) ?? "0";
}
