/** Makes a catalog file from a public price list: newer facts about known models, and rows for new models. */
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
 * Imports models from a list: those of the catalog, limited to `only` if it names any, and new ones whose ids match
 * `only`.
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
    const isRequested = mayUse({ group: { models: [...only] }, rules: {} }, id);
    if (old === undefined ? !isRequested : only.length > 0 && !isRequested) continue;
    const row = rowOf(listed, { id, old: old?.row, date });
    // Models with an invalid id or without a context window are skipped.
    if (!modelSchema.safeParse({ ...row, targets: [{ upstream: vendor, model }] }).success) continue;
    rows.push({ vendor, model, date, source, ...(old?.page !== undefined && { page: old.page }), row });
    if (old === undefined) imported.added.push(id);
    else {
      const oldPrices = isObject(old.row.pricing) ? old.row.pricing : {};
      imported.changes.push(...listPriceDifferences(oldPrices, listed.pricing).map((change) => ({ id, ...change })));
    }
  }
  return { ...imported, catalog: { date, models: rows } };
}

function idOf({ vendor, model }: ListedModel): string {
  return `${vendor === "gemini" ? "google" : vendor}/${model.slice(model.lastIndexOf("/") + 1)}`;
}

/** Returns the row of a listed model. A known model keeps the members that the list lacks, such as prices of tools. */
function rowOf(
  { context_length, max_completion_tokens, pricing, row }: ListedModel,
  { id, old, date }: { id: string; old: JsonObject | undefined; date: string },
): CatalogModel["row"] {
  const base = old ?? { created: Date.parse(date) / 1000, ...row };
  const { context_tiers: _, ...kept } = isObject(base.pricing) ? base.pricing : {};
  const hostLimits = isObject(base.top_provider) ? base.top_provider : {};
  return {
    ...base,
    id,
    ...(context_length !== undefined && { context_length }),
    ...(max_completion_tokens !== undefined && { top_provider: { ...hostLimits, max_completion_tokens } }),
    pricing: { ...kept, ...pricing },
  };
}
