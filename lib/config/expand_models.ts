/** Completes configured models from the built-in catalog. */
import { mayUse } from "../access/permissions.ts";
import { type CatalogModel, type CatalogSnapshot, loadCatalog, type ReadText } from "../catalog/snapshot.ts";
import { isObject, type Json, type JsonObject } from "../json/mod.ts";
import { formatProblem } from "./problems.ts";

/** A configuration with complete models. */
export interface ExpandedConfig {
  file: Json;
  problems: string[];
  /** For each model its index in the file's list; absent: the lists are the same. */
  modelIndices?: readonly number[];
}

/** Required members. A model that lacks one is completed from the catalog. */
const REQUIRED_MEMBERS = ["created", "context_length", "pricing", "targets"] as const;

/**
 * Members whose objects are merged member by member. Prices are replaced as a whole, because prices from two lists must
 * not mix.
 */
const MERGED_MEMBERS = ["architecture", "top_provider", "reasoning", "features"] as const;

/**
 * Completes models that are ids or globs such as `"openai/*"`, or that lack members. Complete models stay unchanged.
 * Malformed values are skipped; the schema reports them later.
 */
export async function expandModels(file: Json, readTextFile: ReadText): Promise<ExpandedConfig> {
  if (!isObject(file) || !Array.isArray(file.models) || !file.models.some(isIncomplete)) return { file, problems: [] };
  let snapshot: CatalogSnapshot;
  try {
    snapshot = await loadCatalog(typeof file.catalog === "string" ? file.catalog : undefined, readTextFile);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    // Without the catalog, no model can be validated.
    return { file: { ...file, models: [] }, problems: [formatProblem(["catalog"], error.message)] };
  }
  const expansion = new Expansion(file, snapshot);
  for (const [index, item] of file.models.entries()) expansion.add(item, index);
  return { ...expansion.result(), problems: [...dateProblems(file, snapshot), ...expansion.problems] };
}

function isIncomplete(item: Json): boolean {
  return typeof item === "string" ||
    isObject(item) && typeof item.id === "string" && REQUIRED_MEMBERS.some((name) => item[name] === undefined);
}

/** Reports a catalog of another date than `catalog_date`, so that a release never changes prices silently. */
function dateProblems({ catalog_date }: JsonObject, { date }: CatalogSnapshot): string[] {
  if (typeof catalog_date !== "string" || catalog_date === date) return [];
  return [
    formatProblem(
      ["catalog_date"],
      `The catalog is dated ${date}, not ${catalog_date}: review it with "sluice models list", then update catalog_date`,
    ),
  ];
}

class Expansion {
  readonly problems: string[] = [];
  readonly #file: JsonObject;
  readonly #catalog: readonly CatalogModel[];
  readonly #models: Json[] = [];
  readonly #modelIndices: number[] = [];
  /** Ids that are configured or already added. Globs skip them. */
  readonly #ids: Set<string>;

  constructor(file: JsonObject, { models }: CatalogSnapshot) {
    this.#file = file;
    this.#catalog = models;
    const configured = Array.isArray(file.models) ? file.models.filter(isObject) : [];
    this.#ids = new Set(configured.flatMap(({ id }) => typeof id === "string" ? [id] : []));
  }

  add(item: Json, index: number): void {
    if (typeof item === "string") this.#addAll(item, index);
    else this.#push(isObject(item) && isIncomplete(item) ? this.#complete(item, index) : item, index);
  }

  result(): Omit<ExpandedConfig, "problems"> {
    return { file: { ...this.#file, models: this.#models }, modelIndices: this.#modelIndices };
  }

  #push(model: Json, index: number): void {
    this.#models.push(model);
    this.#modelIndices.push(index);
  }

  #complete(model: JsonObject, index: number): JsonObject {
    const catalogModel = this.#catalog.find(({ row }) => row.id === model.id);
    if (catalogModel === undefined) {
      if (REQUIRED_MEMBERS.every((name) => model[name] === undefined)) {
        this.problems.push(formatProblem(
          ["models", index, "id"],
          `"${String(model.id)}" is not in the catalog (see "sluice models list"): configure it in full`,
        ));
      }
      return model;
    }
    const merged: JsonObject = { ...catalogModel.row, ...model };
    for (const name of MERGED_MEMBERS) {
      const [inCatalog, configured] = [catalogModel.row[name], model[name]];
      if (isObject(inCatalog) && isObject(configured)) merged[name] = { ...inCatalog, ...configured };
    }
    if (model.targets !== undefined) return merged;
    const target = this.#targetOf(catalogModel, index);
    return target === undefined ? merged : { ...merged, targets: [target] };
  }

  #addAll(glob: string, index: number): void {
    const matching = this.#catalog.filter(({ row }) => mayUse({ group: { models: [glob] }, rules: {} }, row.id));
    if (matching.length === 0) {
      this.problems.push(formatProblem(
        ["models", index],
        `"${glob}" matches no model in the catalog (see "sluice models list")`,
      ));
    }
    const reachable = matching.filter(({ vendor }) => this.#upstreamsOf(vendor).length > 0);
    // Without any upstream, report the vendor of the first model only.
    for (const model of reachable.length > 0 ? reachable : matching.slice(0, 1)) {
      if (this.#ids.has(model.row.id)) continue;
      const target = this.#targetOf(model, index);
      // One problem covers all models of a vendor.
      if (target === undefined) return;
      this.#ids.add(model.row.id);
      this.#push({ ...model.row, targets: [target] }, index);
    }
  }

  #upstreamsOf(vendor: string): string[] {
    const upstreams = isObject(this.#file.upstreams) ? this.#file.upstreams : {};
    return Object.entries(upstreams).filter(([, row]) => isObject(row) && row.vendor === vendor).map(([name]) => name);
  }

  #targetOf({ vendor, model, row: { id } }: CatalogModel, index: number): JsonObject | undefined {
    const [upstream, ...others] = this.#upstreamsOf(vendor);
    if (upstream !== undefined && others.length === 0) return { upstream, model };
    const names = [upstream, ...others].map((name) => `"${name}"`).join(", ");
    this.problems.push(formatProblem(
      ["models", index],
      upstream === undefined
        ? `"${id}" needs an upstream of vendor "${vendor}": add one to upstreams, or set targets`
        : `Several upstreams are of vendor "${vendor}" (${names}): write { "id": "${id}", "targets": […] } and name one`,
    ));
    return undefined;
  }
}

/** Replaces indices into the expanded models, such as `models[7]`, in a text by indices into the file's list. */
export function pathInFile(text: string, modelIndices: readonly number[] | undefined): string {
  if (modelIndices === undefined) return text;
  return text.replaceAll(/(?<![.\w])models\[(\d+)\]/g, (path, index) => {
    const fileIndex = modelIndices[Number(index)];
    return fileIndex === undefined ? path : `models[${fileIndex}]`;
  });
}
