/** Compares the prices and limits of configured models with a price list. */
import type { Config } from "../config.ts";
import { isObject, type Json, type JsonObject } from "../json/mod.ts";
import type { Model, Target } from "./model.ts";
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

/**
 * Returns the differences between a model and its entry, for the members that the entry has. Listed prices are compared
 * with those of the target, or with those of the model if the target has none.
 */
export function listDifferences({ index, model, target, listed }: MatchedModel): ListedDifference[] {
  const differences: ListedDifference[] = [];
  const compare: Compare = (member, configured, listed) => {
    if (normalize(configured) === normalize(listed)) return;
    const identity = { id: model.id, index, upstream: target.upstream, model: target.model };
    differences.push({ ...identity, member, configured: configured ?? null, listed });
  };
  const { context_length, max_completion_tokens, pricing } = listed;
  if (context_length !== undefined) compare("context_length", model.context_length, context_length);
  if (max_completion_tokens !== undefined) {
    compare("top_provider.max_completion_tokens", model.top_provider.max_completion_tokens, max_completion_tokens);
  }
  const path = target.pricing === undefined ? "pricing" : `targets[${model.targets.indexOf(target)}].pricing`;
  comparePrices((target.pricing ?? model.pricing) as unknown as JsonObject, pricing, { path, compare });
  return differences;
}

/** Returns a price without trailing zeros, for comparisons. */
function normalize(value: Json | undefined): string {
  const text = String(value ?? null);
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/** Returns the listed prices that the configured ones lack, or that differ from them. */
export function listPriceDifferences(
  configuredPrices: JsonObject,
  listedPrices: JsonObject,
): Pick<ListedDifference, "member" | "configured" | "listed">[] {
  const differences: Pick<ListedDifference, "member" | "configured" | "listed">[] = [];
  const compare: Compare = (member, configured, listed) => {
    if (normalize(configured) === normalize(listed)) return;
    differences.push({ member, configured: configured ?? null, listed });
  };
  comparePrices(configuredPrices, listedPrices, { path: "pricing", compare });
  return differences;
}

/** Records a difference if the two values of a member are not equal. */
type Compare = (member: string, configured: Json | undefined, listed: Json) => void;

function comparePrices(
  configured: JsonObject | undefined,
  listed: JsonObject,
  { path, compare }: { path: string; compare: Compare },
): void {
  for (const [name, price] of Object.entries(listed)) {
    if (typeof price === "string") compare(`${path}.${name}`, configured?.[name], price);
    else if (isObject(price)) {
      const nested = configured?.[name];
      comparePrices(isObject(nested) ? nested : undefined, price, { path: `${path}.${name}`, compare });
    }
  }
  const tiersOf = (prices: JsonObject | undefined): JsonObject[] =>
    prices !== undefined && Array.isArray(prices.context_tiers) ? prices.context_tiers.filter(isObject) : [];
  const [configuredTiers, listedTiers] = [tiersOf(configured), tiersOf(listed)];
  for (const threshold of new Set([...configuredTiers, ...listedTiers].map((tier) => tier.above))) {
    const configuredTier = configuredTiers.find(({ above }) => above === threshold);
    const listedTier = listedTiers.find(({ above }) => above === threshold);
    const { above: _, ...listedPrices } = listedTier ?? {};
    const tierPath = `${path}.context_tiers[above ${String(threshold)}]`;
    if (listedTier === undefined) compare(tierPath, tierText(configuredTier), null);
    else comparePrices(configuredTier, listedPrices, { path: tierPath, compare });
  }
}

function tierText(tier: JsonObject | undefined): string | undefined {
  return tier === undefined ? undefined : `${String(tier.prompt)}, ${String(tier.completion)}`;
}
