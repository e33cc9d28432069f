/** The catalog in force: every model by id and by vendor. */
import type { Config } from "../config.ts";
import { EMBEDDED_MODELS } from "./embedded.ts";
import type { Model } from "./model.ts";

/** Every model the gateway serves, in the order of the configuration, the embedded ones last. */
export interface Catalog {
  readonly models: readonly Model[];
  /** Models by the vendor part of their ids, in the order of `models`. */
  readonly vendors: ReadonlyMap<string, readonly Model[]>;
  /** The model of exactly this id. */
  find(id: string): Model | undefined;
}

/** Builds the look-ups. Ids are unique: the configuration was checked. */
export function createCatalog(config: Pick<Config, "models" | "embedded_models">): Catalog {
  const models = config.embedded_models ? [...config.models, ...EMBEDDED_MODELS] : [...config.models];
  const byId = new Map(models.map((model) => [model.id, model]));
  return {
    models,
    vendors: Map.groupBy(models, (model) => model.vendor),
    find: (id) => byId.get(id),
  };
}

/** True for a model that answers in text, whatever else it makes. */
export function isLanguageModel(model: Model): boolean {
  return model.architecture.output_modalities.includes("text");
}

/** True for a model of the image endpoints: it makes pictures and nothing else. */
export function isImageModel(model: Model): boolean {
  return model.architecture.output_modalities.includes("image") && !isLanguageModel(model);
}
