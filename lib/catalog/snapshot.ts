/** The built-in model catalog: dated public facts about vendors' models. */
import { messageOf } from "../errors.ts";
import { isObject, type Json, type JsonObject, parseJson } from "../json/mod.ts";
import { isVendorName, type VendorName } from "../upstreams/vendors.ts";

/** Facts about one model. */
export interface CatalogModel {
  /** Vendor of the upstreams that serve it. */
  vendor: VendorName;
  /** The vendor's model id. */
  model: string;
  /** Day of the facts, such as `2026-07-24`. */
  date: string;
  /** Data sets that these facts come from. */
  source: string;
  /** Address of the vendor's own price list; absent: unknown. */
  page?: string;
  /** A row of the configuration without targets. */
  row: JsonObject & { id: string };
}

/** The models of a release. */
export interface CatalogSnapshot {
  /** Day of the newest facts. */
  date: string;
  models: readonly CatalogModel[];
}

/** Reads a text file. */
export type ReadText = (path: string) => Promise<string>;

/**
 * Loads the catalog of this release, with rows replaced by those of a file.
 * @param path of a file made by `sluice models import FILE --catalog`; absent: none
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

/** Loads the catalog of this release. It is imported lazily, so that configurations without it do not load it. */
export async function loadSnapshot(): Promise<CatalogSnapshot> {
  const { default: snapshot } = await import("./snapshot/models.json", { with: { type: "json" } });
  return snapshot as unknown as CatalogSnapshot;
}
