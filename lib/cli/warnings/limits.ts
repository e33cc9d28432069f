/** Warnings about limits that admit nothing, and budgets that pay for nothing. */
import { mayUse } from "../../access/permissions.ts";
import { createCatalog, pricingAt } from "../../catalog/catalog.ts";
import type { Limits, Model } from "../../catalog/model.ts";
import { type Budget, type Config, groupOf } from "../../config.ts";
import { pathText } from "../../config/problems.ts";
import { outputTokens } from "../../billing/image_tokens.ts";
import { type Amount, costOf, formatUsd, parseFactor, parseUsd, timesFactor } from "../../billing/money.ts";
import { type Warning, warning } from "./warning.ts";

/** Tokens of a short prompt, and of an answer to a request without a maximum. */
const USUAL_TEXT = 1_280;
const USUAL_IMAGE = { width: 1024, height: 1024 };

/** A group or a key with limits and a budget. */
interface Holder {
  path: (string | number)[];
  models: readonly Model[];
  /** The factor of its prices. */
  factor: string;
  limits: [name: string, limits: Limits | undefined][];
  budgets: [name: string, budget: Budget | undefined][];
}

/** Warnings about the limits of models, groups and keys, and about budgets. `now` in Unix milliseconds. */
export function limitWarnings(config: Config, now: number): Warning[] {
  return [
    ...config.models.flatMap((model, index) =>
      tokenLimitWarnings(model.limits, { path: ["models", index, "limits"], models: [model] })
    ),
    ...holders(config).flatMap(({ path, models, factor, limits, budgets }) => [
      ...limits.flatMap(([name, limits]) => tokenLimitWarnings(limits, { path: [...path, name], models })),
      ...budgets.flatMap(([name, budget]) => budgetWarnings(budget, { path: [...path, name], models, factor, now })),
    ]),
  ];
}

function holders(config: Config): Holder[] {
  const { models } = createCatalog(config);
  return [
    ...Object.entries(config.groups).map(([name, group]): Holder => ({
      path: ["groups", name],
      models: models.filter(({ id }) => mayUse({ group, rules: {} }, id)),
      factor: group.price_factor,
      limits: [["limits", group.limits], ["key_limits", group.key_limits]],
      budgets: [["budget", group.budget], ["key_budget", group.key_budget], ["user_budget", group.user_budget]],
    })),
    ...config.keys.flatMap(({ group: name, rules }, index): Holder[] => {
      const group = groupOf(config, name);
      return group === undefined ? [] : [{
        path: ["keys", index],
        models: models.filter(({ id }) => mayUse({ group, rules }, id)),
        factor: group.price_factor,
        limits: [["limits", rules.limits]],
        budgets: [["budget", rules.budget], ["user_budget", rules.user_budget]],
      }];
    }),
  ];
}

type HolderScope = Pick<Holder, "path" | "models">;

function makesText({ architecture }: Model): boolean {
  return architecture.output_modalities.includes("text");
}

/** Token limits that are smaller than the smallest usual request. */
function tokenLimitWarnings(limits: Limits | undefined, { path, models }: HolderScope): Warning[] {
  const tokensPerMinute = limits?.tokens_per_minute;
  if (tokensPerMinute === undefined || models.length === 0) return [];
  const usual = models.map((model) =>
    makesText(model) ? Math.min(USUAL_TEXT, model.context_length) : outputTokens(USUAL_IMAGE)
  );
  const smallest = Math.min(...usual);
  return tokensPerMinute >= smallest ? [] : [
    warning(
      pathText([...path, "tokens_per_minute"]),
      `${tokensPerMinute} are less than one usual request of about ${smallest} tokens: raise it`,
    ),
  ];
}

/** Budgets that do not cover the dearest request that a model takes. */
function budgetWarnings(
  budget: Budget | undefined,
  { path, models, factor, now }: HolderScope & Pick<Holder, "factor"> & { now: number },
): Warning[] {
  if (budget === undefined) return [];
  let dearest: { id: string; cost: Amount } | undefined;
  for (const model of models) {
    const cost = timesFactor(costBound(model, now), parseFactor(factor));
    if (dearest === undefined || cost > dearest.cost) dearest = { id: model.id, cost };
  }
  if (dearest === undefined || parseUsd(budget.usd) >= dearest.cost) return [];
  return [
    warning(
      pathText([...path, "usd"]),
      `${budget.usd} USD are less than one request of the largest size to "${dearest.id}", up to ` +
        `${formatUsd(dearest.cost)} USD: raise it, or remove the model`,
    ),
  ];
}

/** A whole context and the longest answer, or one image of the usual size. */
function costBound(model: Model, now: number): Amount {
  const { context_tiers = [], ...plain } = pricingAt(model, now);
  if (!makesText(model)) return costOf(outputTokens(USUAL_IMAGE), plain.completion);
  const output = Math.min(model.top_provider.max_completion_tokens, model.context_length);
  const input = model.context_length - output;
  const { prompt, completion } = context_tiers.findLast(({ above }) => input > above) ?? plain;
  return costOf(input, prompt) + costOf(output, completion);
}
