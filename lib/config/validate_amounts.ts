/** Validates that the cost of every request fits into the ledger, so that no answer is lost because of its price. */
import { mayUse } from "../access/permissions.ts";
import { kindOf } from "../catalog/catalog.ts";
import type { Model } from "../catalog/model.ts";
import type { Pricing } from "../catalog/price_schema.ts";
import { type Amount, formatUsd } from "../billing/money.ts";
import { INPUT_CLASSES, pricesOf, unitPrices } from "../billing/price.ts";
import type { Config } from "../config.ts";
import { MAX_AMOUNT } from "../store/entry_row.ts";
import { formatProblem } from "./problems.ts";

/** The most tokens of an image, rounded up. */
const MAX_IMAGE_TOKENS = 25_000;

/** Returns a problem for each model whose largest request costs more in a group than the ledger can store. */
export function amountProblems({ models, groups }: Pick<Config, "models" | "groups">): string[] {
  const factors = Object.values(groups).map(({ price_factor }) => price_factor);
  const highestFactor = factors.reduce((high, factor) => Number(factor) > Number(high) ? factor : high, "0");
  return models.flatMap((model, index) => {
    // Nearly all models are cheap enough for every group. Trying each group would take seconds with many of both.
    if (largestCost(model, highestFactor) <= MAX_AMOUNT) return [];
    for (const [name, group] of Object.entries(groups)) {
      if (!mayUse({ group, rules: {} }, model.id)) continue;
      const cost = largestCost(model, group.price_factor);
      if (cost <= MAX_AMOUNT) continue;
      return [
        formatProblem(
          ["models", index, "pricing"],
          `A request of group "${name}" may cost ${formatUsd(cost)} USD, more than the ledger can store: write USD ` +
            "per token",
        ),
      ];
    }
    return [];
  });
}

/** Returns the cost of a full context with the longest answer, at the highest prices of any tier and time. */
function largestCost(model: Model, factor: string): Amount {
  const { context_length: input, top_provider } = model;
  const output = kindOf(model) === "image" ? MAX_IMAGE_TOKENS : top_provider.max_completion_tokens;
  const all: Pricing[] = [model.pricing, ...model.price_changes].flatMap((pricing) => [
    pricing,
    ...(pricing.time_windows ?? []).map((window) => window.pricing),
  ]);
  const sheets = all.flatMap((pricing) => {
    const { sheet, extraPrices } = pricesOf(pricing, { model: model.id, factor });
    return extraPrices === undefined ? [sheet] : extraPrices.dearest.map((level) => level.sheet);
  });
  let highest = 0n;
  for (const sheet of sheets) {
    const prices = unitPrices(sheet);
    for (const name of INPUT_CLASSES) {
      const cost = BigInt(input) * prices[name] + BigInt(output) * prices.completion;
      if (cost > highest) highest = cost;
    }
  }
  return highest;
}
