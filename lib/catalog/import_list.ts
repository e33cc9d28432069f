/** Creates a catalog file from a public price list: newer facts about known models, and rows for new ones. */
import { mayUse } from "../access/permissions.ts";
import { isObject, type JsonObject } from "../json/mod.ts";
import { modelSchema } from "./model.ts";
import { type ListedDifference, listPriceDifferences } from "./price_differences.ts";
import type { ListedModel } from "./price_lists.ts";
import type { CatalogModel, CatalogSnapshot } from "./snapshot.ts";

/** A catalog file, and its changes. */
export interface ImportedCatalog {
  catalog: CatalogSnapshot;
  /** Prices of known models that differ in the list. */
  changes: ({ id: string } & Pick<ListedDifference, "member" | "configured" | "listed">)[];
  /** Ids of new models. */
  added: string[];
}

/**
 * Imports from a list the models of the catalog, and those whose ids match a glob.
 * @param options `date`: day of the list; `source`: its name; `only`: globs of ids
 */
export function importList(
  list: readonly ListedModel[],
  { models }: CatalogSnapshot,
  { date, source, only }: { date: string; source: string; only: readonly string[] },
): ImportedCatalog {
  const known = new Map(models.map((model) => [`${model.vendor}\n${model.model}`, model]));
  const imported: ImportedCatalog = { catalog: { date, models: [] }, changes: [], added: [] };
  const rows: CatalogModel[] = [];
  for (const listed of list) {
    const { vendor, model } = listed;
    const old = known.get(`${vendor}\n${model}`);
    const id = old?.row.id ?? idOf(listed);
    const isAsked = mayUse({ group: { models: [...only] }, rules: {} }, id);
    if (old === undefined ? !isAsked : only.length > 0 && !isAsked) continue;
    const row = rowOf(listed, { id, old: old?.row, date });
    // Skips invalid ids and models without a context window.
    if (!modelSchema.safeParse({ ...row, targets: [{ upstream: vendor, model }] }).success) continue;
    rows.push({ vendor, model, date, source, ...(old?.page !== undefined && { page: old.page }), row });
    if (old === undefined) imported.added.push(id);
    else {
      const own = isObject(old.row.pricing) ? old.row.pricing : {};
      imported.changes.push(...listPriceDifferences(own, listed.pricing).map((change) => ({ id, ...change })));
    }
  }
  return { ...imported, catalog: { date, models: rows } };
}

function idOf({ vendor, model }: ListedModel): string {
  return `${vendor === "gemini" ? "google" : vendor}/${model.slice(model.lastIndexOf("/") + 1)}`;
}

/** Creates a row. A known model keeps members that the list does not have, such as prices of tools. */
function rowOf(
  { context_length, max_completion_tokens, pricing, row }: ListedModel,
  { id, old, date }: { id: string; old: JsonObject | undefined; date: string },
): CatalogModel["row"] {
  const base = old ?? { created: Date.parse(date) / 1000, ...row };
  const { context_tiers: _, ...kept } = isObject(base.pricing) ? base.pricing : {};
  return {
    ...base,
    id,
    ...(context_length !== undefined && { context_length }),
    ...(max_completion_tokens !== undefined && { top_provider: { max_completion_tokens } }),
    pricing: { ...kept, ...pricing },
  };
}
