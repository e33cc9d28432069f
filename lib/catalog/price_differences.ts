/** Compares the models of a configuration with a price list. */
import type { Config } from "../config.ts";
import { isObject, type Json, type JsonObject } from "../json/mod.ts";
import type { Model, Target } from "./model.ts";
import type { ListedModel } from "./price_lists.ts";

/** A difference. */
export interface ListedDifference {
  /** Public id of the model, and its index in the configuration. */
  id: string;
  index: number;
  upstream: string;
  /** The upstream's id of the model. */
  model: string;
  /** Path within the row of the configuration, such as `pricing.prompt`. */
  member: string;
  /** `null` if it is not configured. */
  configured: Json;
  listed: Json;
}

/** A configured model, matched with a listed one of its upstream's vendor. */
export interface MatchedModel {
  index: number;
  model: Model;
  target: Target;
  listed: ListedModel;
}

/** Matches configured models with a list, by the upstream's vendor and model id. */
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
 * Lists the differences between a model and the list, for the members of the list. Prices are compared with the
 * target's if it has any, else with the model's.
 */
export function listDifferences({ index, model, target, listed }: MatchedModel): ListedDifference[] {
  const found: ListedDifference[] = [];
  const add = (member: string, configured: Json | undefined, value: Json) => {
    if (plain(configured) === plain(value)) return;
    const identity = { id: model.id, index, upstream: target.upstream, model: target.model };
    found.push({ ...identity, member, configured: configured ?? null, listed: value });
  };
  const { context_length, max_completion_tokens, pricing } = listed;
  if (context_length !== undefined) add("context_length", model.context_length, context_length);
  if (max_completion_tokens !== undefined) {
    add("top_provider.max_completion_tokens", model.top_provider.max_completion_tokens, max_completion_tokens);
  }
  const path = target.pricing === undefined ? "pricing" : `targets[${model.targets.indexOf(target)}].pricing`;
  addPrices((target.pricing ?? model.pricing) as unknown as JsonObject, pricing, { path, add });
  return found;
}

/** Normalizes a price: without trailing zeros. */
function plain(value: Json | undefined): string {
  const text = String(value ?? null);
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/** Lists the prices of a list that a row lacks or has differently: member, configured, listed. */
export function listPriceDifferences(
  own: JsonObject,
  listed: JsonObject,
): Pick<ListedDifference, "member" | "configured" | "listed">[] {
  const found: Pick<ListedDifference, "member" | "configured" | "listed">[] = [];
  const add: Add = (member, configured, value) => {
    if (plain(configured) !== plain(value)) found.push({ member, configured: configured ?? null, listed: value });
  };
  addPrices(own, listed, { path: "pricing", add });
  return found;
}

type Add = (member: string, configured: Json | undefined, listed: Json) => void;

function addPrices(own: JsonObject | undefined, listed: JsonObject, { path, add }: { path: string; add: Add }): void {
  for (const [name, price] of Object.entries(listed)) {
    if (typeof price === "string") add(`${path}.${name}`, own?.[name], price);
    else if (isObject(price)) {
      const inner = own?.[name];
      addPrices(isObject(inner) ? inner : undefined, price, { path: `${path}.${name}`, add });
    }
  }
  const tiers = (row: JsonObject | undefined) =>
    row !== undefined && Array.isArray(row.context_tiers) ? row.context_tiers : [];
  const [ours, theirs] = [tiers(own), tiers(listed)].map((list) => list.filter(isObject));
  for (const above of new Set([...ours ?? [], ...theirs ?? []].map((tier) => tier.above))) {
    const at = (list: JsonObject[] | undefined) => list?.find((tier) => tier.above === above);
    const { above: _, ...prices } = at(theirs) ?? {};
    const tierPath = `${path}.context_tiers[above ${String(above)}]`;
    if (at(theirs) === undefined) add(tierPath, tierText(at(ours)), null);
    else addPrices(at(ours), prices, { path: tierPath, add });
  }
}

function tierText(tier: JsonObject | undefined): string | undefined {
  return tier === undefined ? undefined : `${String(tier.prompt)}, ${String(tier.completion)}`;
}
