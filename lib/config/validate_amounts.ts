/** Validates that the cost of every request fits into the ledger, so that no answer is lost because of its price. */
import { mayUse } from "../access/permissions.ts";
import { kindOf } from "../catalog/catalog.ts";
import type { Model } from "../catalog/model.ts";
import type { Pricing } from "../catalog/price_schema.ts";
import { type Amount, formatUsd, parseFactor, timesFactor } from "../billing/money.ts";
import { costBound, pricesOf } from "../billing/price.ts";
import type { Config } from "../config.ts";
import { MAX_AMOUNT } from "../store/entry_row.ts";
import { formatProblem } from "./problems.ts";

/** The most tokens of an image, rounded up. */
const MAX_IMAGE_TOKENS = 25_000;

/** Factors of groups are smaller. */
const MAX_FACTOR = 1_000n;

/** Returns a problem for each model whose largest request costs more in a group than the ledger can store. */
export function amountProblems({ models, groups }: Pick<Config, "models" | "groups">): string[] {
  return models.flatMap((model, index) => {
    const plainCost = largestCost(model);
    if (plainCost * MAX_FACTOR <= MAX_AMOUNT) return [];
    for (const [name, group] of Object.entries(groups)) {
      if (!mayUse({ group, rules: {} }, model.id)) continue;
      const cost = timesFactor(plainCost, parseFactor(group.price_factor));
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

/**
 * Returns the cost of a full context with the longest answer, at the highest prices of any tier and time, without the
 * factor of a group.
 */
function largestCost({ id, architecture, context_length: input, top_provider, pricing, price_changes }: Model): Amount {
  const output = kindOf({ architecture }) === "image" ? MAX_IMAGE_TOKENS : top_provider.max_completion_tokens;
  const all: Pricing[] = [pricing, ...price_changes].flatMap((prices) => [
    prices,
    ...(prices.time_windows ?? []).map((window) => window.pricing),
  ]);
  const sheets = all.flatMap((prices) => {
    const { sheet, extraPrices } = pricesOf(prices, { model: id, factor: "1" });
    return extraPrices === undefined ? [sheet] : extraPrices.dearest.map((level) => level.sheet);
  });
  let highest = 0n;
  for (const sheet of sheets) {
    const cost = costBound({ input, output }, sheet);
    if (cost > highest) highest = cost;
  }
  return highest;
}
