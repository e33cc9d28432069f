/** Loads the catalog of a release, which has dated public facts about vendors' models, and the file that updates it. */
import { messageOf } from "../errors.ts";
import { isObject, type Json, type JsonObject, parseJson } from "../json/mod.ts";
import { isVendorName, type VendorName } from "../upstreams/vendors.ts";

/** A model of the catalog, with the source of its facts. */
export interface CatalogModel {
  /** Vendor of the upstreams that serve it. */
  vendor: VendorName;
  /** The vendor's model id. */
  model: string;
  /** Day of the facts, such as `2026-07-24`. */
  date: string;
  /** Names of the data sets that the facts come from. */
  source: string;
  /** Address of the vendor's own price list; absent: unknown. */
  page?: string;
  /** A row of the configuration without targets. */
  row: JsonObject & { id: string };
}

/** A catalog. */
export interface CatalogSnapshot {
  /** Day of the newest facts. */
  date: string;
  models: readonly CatalogModel[];
}

/** Reads a text file. Rejects if it cannot be read. */
export type ReadText = (path: string) => Promise<string>;

/**
 * Loads the catalog of this release. The models of a file replace and complete those of the release.
 * @param path a file made by `sluice models import FILE --catalog`; `undefined`: none
 * @throws {RangeError} if the file cannot be read or is not a catalog
 */
export async function loadCatalog(path: string | undefined, readTextFile: ReadText): Promise<CatalogSnapshot> {
  const release = await loadSnapshot();
  if (path === undefined) return release;
  let file: Json;
  try {
    file = parseJson(await readTextFile(path));
  } catch (error) {
    throw new RangeError(`Cannot read "${path}": ${messageOf(error)}`, { cause: error });
  }
  if (!isCatalog(file)) {
    throw new RangeError(`Cannot use "${path}": expected the output of "sluice models import FILE --catalog"`);
  }
  const ids = new Set(file.models.map(({ row }) => row.id));
  return {
    date: file.date > release.date ? file.date : release.date,
    models: [...release.models.filter(({ row }) => !ids.has(row.id)), ...file.models],
  };
}

function isCatalog(file: unknown): file is CatalogSnapshot {
  if (!isObject(file) || typeof file.date !== "string" || !Array.isArray(file.models)) return false;
  return file.models.every((model) =>
    isObject(model) && isObject(model.row) && typeof model.row.id === "string" && typeof model.date === "string" &&
    isVendorName(model.vendor) && typeof model.model === "string"
  );
}

/** Loads the catalog of this release. The import is dynamic, so that it is loaded only if a configuration uses it. */
export async function loadSnapshot(): Promise<CatalogSnapshot> {
  const { default: snapshot } = await import("./snapshot/models.json", { with: { type: "json" } });
  return snapshot as unknown as CatalogSnapshot;
}
