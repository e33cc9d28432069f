/** The catalog: every model by id and by vendor. */
import type { Config } from "../config.ts";
import { EMBEDDED_MODELS } from "./embedded.ts";
import { kindOfModalities, type Model, type ModelKind, type Target } from "./model.ts";
import type { Pricing } from "./price_schema.ts";
import { type Caller, mayUse } from "../access/permissions.ts";
import { GatewayError } from "../errors.ts";

/** Every model the gateway serves, in configured order, embedded ones last. */
export interface Catalog {
  readonly models: readonly Model[];
  /** Models by the vendor part of their ids, in configured order. */
  readonly vendors: ReadonlyMap<string, readonly Model[]>;
  /** Finds the model with exactly this id, canonical slug or alias, even if it has expired. */
  find(name: string): Model | undefined;
  /** Lists the models with ids `<vendor>/<name>`. */
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

/** Returns true if the expiration day of a model has begun, in UTC. */
export function isExpired({ expiration_date }: Pick<Model, "expiration_date">, now: number): boolean {
  return expiration_date !== null && Date.parse(expiration_date) <= now;
}

/** Returns the kind of a model by its output modalities, which decides its endpoints. */
export function kindOf({ architecture }: Pick<Model, "architecture">): ModelKind {
  return kindOfModalities(architecture.output_modalities);
}

/** Returns true if one of the model's outputs is text. */
export function isLanguageModel(model: Model): boolean {
  return kindOf(model) === "text";
}

/** Gives each row of the embedded upstream its own health, since rows simulate faults independently. */
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

/**
 * Finds the prices at `now` (Unix milliseconds): those of the last price change that has begun, else the row's own; of
 * these, the ones of the current time window.
 */
export function pricingAt({ pricing, price_changes }: Pick<Model, "pricing" | "price_changes">, now: number): Pricing {
  return windowAt(price_changes.findLast(({ from }) => from <= now) ?? pricing, now);
}

/** The prices of the time window that contains `now` (Unix milliseconds), else the prices outside all windows. */
export function windowAt(pricing: Pricing, now: number): Pricing {
  if (pricing.time_windows === undefined) return pricing;
  const minute = Math.floor(now / MINUTE_MS) % DAY_MINUTES;
  const found = pricing.time_windows.find(({ from, until }) =>
    from < until ? minute >= from && minute < until : minute >= from || minute < until
  );
  return found?.pricing ?? pricing;
}

/** The error, and the id that the client probably intended. */
export interface MissingModel {
  error: GatewayError;
  /** Id of the only model that the caller may use and whose id is `<vendor>/<name>`. */
  suggestion?: string;
}

interface Asking {
  gateway: { catalog: Catalog; now: () => number };
  caller: Pick<Caller, "group" | "rules">;
}

/** Creates the error for an unknown name or an expired model. It names no model that the caller may not use. */
export function missingModel(name: string, { gateway, caller }: Asking): MissingModel {
  const now = gateway.now();
  const isAllowed = ({ id }: Model): boolean => mayUse(caller, id);
  const found = gateway.catalog.find(name);
  if (found !== undefined && isAllowed(found) && isExpired(found, now)) {
    return { error: notFound(`Model "${name}" expired on ${found.expiration_date}`) };
  }
  const similar = gateway.catalog.named(name).filter((model) => isAllowed(model) && !isExpired(model, now));
  const suggestion = similar.length === 1 ? similar[0]?.id : undefined;
  if (suggestion === undefined) return { error: notFound(`Model "${name}" does not exist`) };
  return { error: notFound(`Model "${name}" does not exist; did you mean ${suggestion}?`), suggestion };
}

function notFound(message: string): GatewayError {
  return new GatewayError("not_found", message, { param: "model", code: "model_not_found" });
}
