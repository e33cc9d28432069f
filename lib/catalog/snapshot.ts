/** The model catalog that ships with a release: dated public facts about the models of vendors. */
import { messageOf } from "../errors.ts";
import { isObject, type Json, type JsonObject, parseJson } from "../json/mod.ts";
import { type VendorName, VENDORS } from "../upstreams/vendors.ts";

/** The facts about one model. */
export interface CatalogModel {
  /** Vendor of upstreams that have it. */
  vendor: VendorName;
  /** The vendor's id of it. */
  model: string;
  /** Day of the facts, such as `2026-07-24`. */
  date: string;
  /** Data sets with these facts. */
  source: string;
  /** Address of the vendor's own price list; absent: unknown. */
  page?: string;
  /** A row of the configuration without targets. */
  row: JsonObject & { id: string };
}

/** All models of a release. */
export interface CatalogSnapshot {
  /** Day of the newest facts. */
  date: string;
  models: readonly CatalogModel[];
}

/** Reads a file of the system. */
export type ReadText = (path: string) => Promise<string>;

/**
 * The catalog of this release, with the rows of a file in place of those with the same ids.
 * @param path of a file that `sluice models import FILE --catalog` printed; absent: none
 * @throws {RangeError} where the file cannot be read, or is no catalog
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
    typeof model.vendor === "string" && Object.hasOwn(VENDORS, model.vendor) && typeof model.model === "string"
  );
}

/** Loads the catalog of this release. It is a module of its own, so that configurations without it do not pay for it. */
export async function loadSnapshot(): Promise<CatalogSnapshot> {
  const { default: snapshot } = await import("./snapshot/models.json", { with: { type: "json" } });
  return snapshot as unknown as CatalogSnapshot;
}
