/** Warnings about limits and budgets that are too small for a single request. */
import { mayUse } from "../../access/permissions.ts";
import { createCatalog, inputLimit, kindOf, pricingAt } from "../../catalog/catalog.ts";
import type { Limits, Model, ModelKind } from "../../catalog/model.ts";
import { type Budget, type Config, groupOf } from "../../config.ts";
import { pathText } from "../../config/problems.ts";
import { outputTokens } from "../../billing/image_tokens.ts";
import { type Amount, costOf, formatUsd, parseFactor, parseUsd, timesFactor } from "../../billing/money.ts";
import { type Warning, warning } from "./warning.ts";

/** Tokens of a typical text request: a short prompt, and the estimated answer to a request without a maximum. */
const USUAL_TEXT_TOKENS = 1_280;
const USUAL_IMAGE = { width: 1024, height: 1024 };

/** A group or a key with its limits and budgets. */
interface LimitOwner {
  path: (string | number)[];
  /** Models that it may use. */
  models: readonly Model[];
  /** Factor on its prices, a decimal string. */
  factor: string;
  limits: [name: string, limits: Limits | undefined][];
  budgets: [name: string, budget: Budget | undefined][];
}

/** Returns warnings about the limits and budgets of models, groups and keys. @param now Unix time in milliseconds */
export function limitWarnings(config: Config, now: number): Warning[] {
  return [
    ...config.models.flatMap((model, index) =>
      tokenLimitWarnings(model.limits, { path: ["models", index, "limits"], models: [model] })
    ),
    ...limitOwners(config).flatMap(({ path, models, factor, limits, budgets }) => [
      ...limits.flatMap(([name, limits]) => tokenLimitWarnings(limits, { path: [...path, name], models })),
      ...budgets.flatMap(([name, budget]) => budgetWarnings(budget, { path: [...path, name], models, factor, now })),
    ]),
  ];
}

function limitOwners(config: Config): LimitOwner[] {
  const { models } = createCatalog(config);
  return [
    ...Object.entries(config.groups).map(([name, group]): LimitOwner => ({
      path: ["groups", name],
      models: models.filter(({ id }) => mayUse({ group, rules: {} }, id)),
      factor: group.price_factor,
      limits: [["limits", group.limits], ["key_limits", group.key_limits]],
      budgets: [["budget", group.budget], ["key_budget", group.key_budget], ["user_budget", group.user_budget]],
    })),
    ...config.keys.flatMap(({ group: name, rules }, index): LimitOwner[] => {
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

type OwnerScope = Pick<LimitOwner, "path" | "models">;

/** Returns a warning if a token limit is smaller than one typical request. */
function tokenLimitWarnings(limits: Limits | undefined, { path, models }: OwnerScope): Warning[] {
  const limit = limits?.tokens_per_minute;
  if (limit === undefined || models.length === 0) return [];
  const usualTokens = models.map((model) =>
    kindOf(model) === "image" ? outputTokens(USUAL_IMAGE) : Math.min(USUAL_TEXT_TOKENS, model.context_length)
  );
  const fewest = Math.min(...usualTokens);
  return limit >= fewest ? [] : [
    warning(
      pathText([...path, "tokens_per_minute"]),
      `${limit} tokens are fewer than the ${fewest} of a typical request: raise the limit`,
    ),
  ];
}

/** Returns a warning if a budget does not cover the most expensive request that a model accepts. */
function budgetWarnings(
  budget: Budget | undefined,
  { path, models, factor, now }: OwnerScope & Pick<LimitOwner, "factor"> & { now: number },
): Warning[] {
  if (budget === undefined) return [];
  let dearest: { model: Model; cost: Amount } | undefined;
  for (const model of models) {
    const cost = timesFactor(maxCost(model, now), parseFactor(factor));
    if (dearest === undefined || cost > dearest.cost) dearest = { model, cost };
  }
  if (dearest === undefined || parseUsd(budget.usd) >= dearest.cost) return [];
  return [
    warning(
      pathText([...path, "usd"]),
      `${budget.usd} USD do not cover ${LARGEST[kindOf(dearest.model)]} "${dearest.model.id}", which costs up to ` +
        `${formatUsd(dearest.cost)} USD: raise it, or remove the model`,
    ),
  ];
}

/** Names of the request that `maxCost` computes the cost of. */
const LARGEST: Readonly<Record<ModelKind, string>> = {
  text: "the largest request to",
  image: "an image of",
  embedding: "the longest input of",
  rerank: "a search with the longest document at",
  other: "the largest request to",
};

/**
 * Returns the cost of a full context with the longest answer, of one image of the usual size, or of one input of the
 * greatest length.
 */
function maxCost(model: Model, now: number): Amount {
  const { context_tiers = [], ...prices } = pricingAt(model, now);
  const kind = kindOf(model);
  if (kind === "image") return costOf(outputTokens(USUAL_IMAGE), prices.completion);
  // These models write no tokens.
  const isRetrieval = kind === "embedding" || kind === "rerank";
  const output = isRetrieval ? 0 : Math.min(model.top_provider.max_completion_tokens, model.context_length);
  const input = isRetrieval ? inputLimit(model) : model.context_length - output;
  const { prompt, completion } = context_tiers.findLast(({ above }) => input > above) ?? prices;
  const search = kind === "rerank" ? costOf(1, prices.request ?? "0") : 0n;
  return costOf(input, prompt) + costOf(output, completion) + search;
}
