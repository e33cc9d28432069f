/** Compares the prices and limits of configured models with a price list. */
import type { Config } from "../config.ts";
import { isObject, type Json, type JsonObject } from "../json/mod.ts";
import type { Model, Target } from "./model.ts";
import type { Pricing } from "./price_schema.ts";
import type { ListedModel } from "./price_lists.ts";

/** A difference between a configured model and a price list. */
export interface ListedDifference {
  /** Public id of the model. */
  id: string;
  /** Index of the model in the configuration. */
  index: number;
  upstream: string;
  /** The upstream's id of the model. */
  model: string;
  /** Path within the row of the configuration, such as `pricing.prompt`. */
  member: string;
  /** Configured value; `null` if there is none. */
  configured: Json;
  /** Value in the price list; `null` if there is none. */
  listed: Json;
}

/** A configured model, one of its targets, and the entry of a price list for that target. */
export interface MatchedModel {
  /** Index of the model in the configuration. */
  index: number;
  model: Model;
  target: Target;
  listed: ListedModel;
}

/** Matches the targets of configured models with the entries of a list, by the vendor and its model id. */
export function matchModels(
  { models, upstreams }: Pick<Config, "models" | "upstreams">,
  list: readonly ListedModel[],
): MatchedModel[] {
  const byName = new Map(list.map((listed) => [`${listed.vendor}\n${listed.model}`, listed]));
  return models.flatMap((model, index) =>
    model.targets.flatMap((target, targetIndex): MatchedModel[] => {
      const listed = byName.get(`${upstreams[target.upstream]?.vendor}\n${target.model}`);
      const isFirst = model.targets.findIndex((other) => isSameModel(other, target)) === targetIndex;
      return listed === undefined || !isFirst ? [] : [{ index, model, target, listed }];
    })
  );
}

function isSameModel(one: Target, other: Target): boolean {
  return one.upstream === other.upstream && one.model === other.model;
}

type MemberDifference = Pick<ListedDifference, "member" | "configured" | "listed">;

/**
 * Returns the differences between a model and its entry, for the members that the entry has. Listed prices are compared
 * with those of the target, or with those of the model at `now` (Unix milliseconds) if the target has none.
 */
export function listDifferences(match: MatchedModel, now: number): ListedDifference[] {
  const { index, model, target, listed } = match;
  const { context_length, max_completion_tokens, pricing } = listed;
  const maxTokens = model.top_provider.max_completion_tokens;
  const [path, prices] = comparedPrices(match, now);
  const differences = [
    ...(context_length === undefined ? [] : compare("context_length", model.context_length, context_length)),
    ...(max_completion_tokens === undefined
      ? []
      : compare("top_provider.max_completion_tokens", maxTokens, max_completion_tokens)),
    ...listPriceDifferences(prices as unknown as JsonObject, pricing, path),
  ];
  const identity = { id: model.id, index, upstream: target.upstream, model: target.model };
  return differences.map((difference) => ({ ...identity, ...difference }));
}

/** Returns the configured prices in force, and their path within the row. */
function comparedPrices({ model, target }: MatchedModel, now: number): [path: string, prices: Pricing] {
  if (target.pricing !== undefined) return [`targets[${model.targets.indexOf(target)}].pricing`, target.pricing];
  const change = model.price_changes.findLast(({ from }) => from <= now);
  if (change === undefined) return ["pricing", model.pricing];
  return [`price_changes[from ${new Date(change.from).toISOString()}]`, change];
}

/** Returns the difference of a member, if its two values are not equal. */
function compare(member: string, configured: Json = null, listed: Json): MemberDifference[] {
  return normalize(configured) === normalize(listed) ? [] : [{ member, configured, listed }];
}

/** Returns a price without trailing zeros, for comparisons. */
function normalize(value: Json): string {
  const text = String(value);
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/** Returns the listed prices that the configured ones lack, or that differ from them. */
export function listPriceDifferences(
  configured: JsonObject | undefined,
  listed: JsonObject,
  path: string = "pricing",
): MemberDifference[] {
  const differences = Object.entries(listed).flatMap(([name, price]) => {
    const own = configured?.[name];
    if (typeof price === "string") return compare(`${path}.${name}`, own, price);
    return isObject(price) ? listPriceDifferences(isObject(own) ? own : undefined, price, `${path}.${name}`) : [];
  });
  const tiersOf = (prices: JsonObject | undefined): JsonObject[] =>
    prices !== undefined && Array.isArray(prices.context_tiers) ? prices.context_tiers.filter(isObject) : [];
  const [configuredTiers, listedTiers] = [tiersOf(configured), tiersOf(listed)];
  for (const threshold of new Set([...configuredTiers, ...listedTiers].map((tier) => tier.above))) {
    const configuredTier = configuredTiers.find(({ above }) => above === threshold);
    const listedTier = listedTiers.find(({ above }) => above === threshold);
    const { above: _, ...listedPrices } = listedTier ?? {};
    const tierPath = `${path}.context_tiers[above ${String(threshold)}]`;
    differences.push(
      ...(listedTier === undefined
        ? compare(tierPath, tierText(configuredTier), null)
        : listPriceDifferences(configuredTier, listedPrices, tierPath)),
    );
  }
  return differences;
}

function tierText(tier: JsonObject | undefined): string | undefined {
  return tier === undefined ? undefined : `${String(tier.prompt)}, ${String(tier.completion)}`;
}
