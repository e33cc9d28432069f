/** The catalog: finds models by name or vendor, their prices at a time, and the error for a name that is unknown. */
import type { Config } from "../config.ts";
import { EMBEDDED_MODELS } from "./embedded.ts";
import { kindOfModalities, type Model, type ModelKind, type Target } from "./model.ts";
import type { Pricing } from "./price_schema.ts";
import { type Caller, mayUse, requireModel } from "../access/permissions.ts";
import { GatewayError } from "../errors.ts";

/** All models that the gateway serves. */
export interface Catalog {
  /** Models in configured order, the embedded ones last. */
  readonly models: readonly Model[];
  /** Models by the vendor part of their ids, in configured order. */
  readonly vendors: ReadonlyMap<string, readonly Model[]>;
  /** Finds the model with exactly this id, canonical slug or alias. The model may have expired. */
  find(name: string): Model | undefined;
  /** Returns the models whose ids are `<vendor>/<name>`, for any vendor. */
  named(name: string): readonly Model[];
}

/** Creates the catalog of a validated configuration, in which each name belongs to one model. */
export function createCatalog(config: Pick<Config, "models" | "embedded_models" | "upstreams">): Catalog {
  const rows = config.embedded_models ? [...config.models, ...EMBEDDED_MODELS] : config.models;
  const models = rows.map((model) => withOwnHealth(model, config));
  const byName = new Map(
    models.flatMap((model) => [model.canonical_slug, ...model.aliases, model.id].map((name) => [name, model])),
  );
  const byBareName = Map.groupBy(models, ({ id, vendor }) => id.slice(vendor.length + 1));
  return {
    models,
    vendors: Map.groupBy(models, (model) => model.vendor),
    find: (name) => byName.get(name),
    named: (name) => byBareName.get(name) ?? [],
  };
}

/** Returns whether the expiration day of a model has begun, in UTC. */
export function isExpired({ expiration_date }: Pick<Model, "expiration_date">, now: number): boolean {
  return expiration_date !== null && Date.parse(expiration_date) <= now;
}

/** Returns the kind of a model by its output modalities, which decides its endpoints. */
export function kindOf({ architecture }: Pick<Model, "architecture">): ModelKind {
  return kindOfModalities(architecture.output_modalities);
}

/** Returns the most tokens of one input of an embedding or rerank model. */
export function inputLimit({ embedding, context_length }: Pick<Model, "embedding" | "context_length">): number {
  return embedding?.max_input_tokens ?? context_length;
}

/** Returns whether a model answers in text. */
export function isLanguageModel(model: Model): boolean {
  return kindOf(model) === "text";
}

/**
 * Marks the targets of embedded models with the model's id, so that each has a health of its own: they simulate faults
 * independently.
 */
function withOwnHealth(model: Model, { upstreams }: Pick<Config, "upstreams">): Model {
  const isEmbedded = ({ upstream }: Target) => upstreams[upstream]?.vendor === "embedded";
  if (!model.targets.some(isEmbedded)) return model;
  return {
    ...model,
    targets: model.targets.map((target) => isEmbedded(target) ? { ...target, row: model.id } : target),
  };
}

const MINUTE_MS = 60_000;
const DAY_MINUTES = 1440;

/** Returns the prices at `now` (Unix milliseconds): those of the current time window of `allPricingAt`. */
export function pricingAt(model: Pick<Model, "pricing" | "price_changes">, now: number): Pricing {
  return windowAt(allPricingAt(model, now), now);
}

/** Returns the prices of the last price change that has begun at `now`, otherwise the model's own, with all windows. */
export function allPricingAt(
  { pricing, price_changes }: Pick<Model, "pricing" | "price_changes">,
  now: number,
): Pricing {
  return price_changes.findLast(({ from }) => from <= now) ?? pricing;
}

/** Returns the prices of the time window that contains `now` (Unix milliseconds), or those outside all windows. */
export function windowAt(pricing: Pricing, now: number): Pricing {
  if (pricing.time_windows === undefined) return pricing;
  const minute = Math.floor(now / MINUTE_MS) % DAY_MINUTES;
  const window = pricing.time_windows.find(({ from, until }) =>
    from < until ? minute >= from && minute < until : minute >= from || minute < until
  );
  return window?.pricing ?? pricing;
}

/** The error for a model that does not exist or has expired. */
export interface MissingModel {
  error: GatewayError;
  /** Id that the client probably intended: the only usable one that is `<vendor>/<name>`; absent if there is none. */
  suggestion?: string;
}

interface ModelLookup {
  gateway: { catalog: Catalog; now: () => number };
  caller: Pick<Caller, "group" | "rules">;
}

/**
 * Returns the model that was found by the name that a caller sent, if the caller may use it.
 * @throws {GatewayError} `forbidden` if the caller may not use it, or a model of this name if there were one;
 * `not_found` for an unknown name and for an expired model
 */
export function requirePermitted(model: Model | undefined, name: string, lookup: ModelLookup): Model {
  const { gateway, caller } = lookup;
  if (model !== undefined) requireModel(caller, model.id, { name });
  if (model !== undefined && !isExpired(model, gateway.now())) return model;
  const missing = missingModel(name, lookup);
  // If only the vendor prefix is missing from a model that the caller may use, the client gets a suggestion.
  if (model === undefined && missing.suggestion === undefined) requireModel(caller, name, { isKnown: false });
  throw missing.error;
}

/** Creates the error for an unknown name or an expired model. It names no model that the caller may not use. */
export function missingModel(name: string, { gateway, caller }: ModelLookup): MissingModel {
  const now = gateway.now();
  const isAllowed = ({ id }: Model): boolean => mayUse(caller, id);
  const model = gateway.catalog.find(name);
  if (model !== undefined && isAllowed(model) && isExpired(model, now)) {
    return { error: notFound(`Model "${name}" expired on ${model.expiration_date}`) };
  }
  const similar = gateway.catalog.named(name).filter((model) => isAllowed(model) && !isExpired(model, now));
  const suggestion = similar.length === 1 ? similar[0]?.id : undefined;
  if (suggestion === undefined) return { error: notFound(`Model "${name}" does not exist`) };
  return { error: notFound(`Model "${name}" does not exist; did you mean ${suggestion}?`), suggestion };
}

function notFound(message: string): GatewayError {
  return new GatewayError("not_found", message, { param: "model", code: "model_not_found" });
}
