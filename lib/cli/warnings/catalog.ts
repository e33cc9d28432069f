/** Warnings about prices that differ from the catalog, and about facts of the catalog that are old. */
import { listDifferences, matchModels } from "../../catalog/price_differences.ts";
import { listSnapshot } from "../../catalog/price_lists.ts";
import { type CatalogSnapshot, loadCatalog } from "../../catalog/snapshot.ts";
import type { Config } from "../../config.ts";
import { DAY_MS } from "../../store/days.ts";
import { type Warning, warning } from "./warning.ts";

/** Age from which facts are unreliable, in days. */
const OLD_DAYS = 90;

/**
 * Returns warnings about models that the catalog has.
 * @param options `now`: Unix time in milliseconds; `usesCatalog`: whether models take members from the catalog
 */
export async function catalogWarnings(
  config: Pick<Config, "models" | "upstreams" | "catalog">,
  { now, usesCatalog }: { now: number; usesCatalog: boolean },
): Promise<Warning[]> {
  const snapshot = await loadCatalog(config.catalog, (path) => Deno.readTextFile(path));
  return [...(usesCatalog ? ageWarnings(config, { snapshot, now }) : []), ...priceWarnings(config, { snapshot, now })];
}

function ageWarnings(
  { models }: Pick<Config, "models">,
  { snapshot, now }: { snapshot: CatalogSnapshot; now: number },
): Warning[] {
  const ids = new Set(models.map(({ id }) => id));
  const old = snapshot.models.filter(({ row, date }) => ids.has(row.id) && now - Date.parse(date) > OLD_DAYS * DAY_MS);
  const oldest = old.map(({ date }) => date).sort()[0];
  if (oldest === undefined) return [];
  return [
    warning(
      "models",
      `The catalog's facts about ${old.length} of them are older than ${OLD_DAYS} days (from ${oldest} on): ` +
        'compare them with a newer list, "sluice models import FILE", or with the pages that "sluice models show" names',
    ),
  ];
}

function priceWarnings(
  config: Pick<Config, "models" | "upstreams">,
  { snapshot, now }: { snapshot: CatalogSnapshot; now: number },
): Warning[] {
  return matchModels(config, listSnapshot(snapshot)).flatMap((match): Warning[] => {
    const prices = listDifferences(match, now).filter(({ member }) =>
      /\.(prompt|completion|input_cache_\w+)$/.test(member)
    );
    const [first, ...others] = prices;
    if (first === undefined) return [];
    const more = others.length === 0 ? "" : `, and ${others.length} more prices differ`;
    return [
      warning(
        `models[${first.index}].${first.member}`,
        `${first.configured ?? "none"} is not ${first.listed ?? "none"}, as in the catalog of ${snapshot.date}` +
          `${more}: see "sluice models diff"; write what the vendor charges you into targets[].pricing`,
      ),
    ];
  });
}
