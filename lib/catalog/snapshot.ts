/** The model catalog that ships with a release: dated public facts about the models of vendors. */
import type { JsonObject } from "../json/mod.ts";
import type { VendorName } from "../upstreams/vendors.ts";

/** The facts about one model. */
export interface CatalogModel {
  /** Vendor of upstreams that have it. */
  vendor: VendorName;
  /** The vendor's id of it. */
  model: string;
  /** Day of the facts, such as `2026-07-24`. */
  date: string;
  /** Data sets that the facts are from. */
  source: string;
  /** Address of the vendor's own price list. */
  page: string;
  /** A row of the configuration without targets. */
  row: JsonObject & { id: string };
}

/** All models of a release. */
export interface CatalogSnapshot {
  /** Day of the newest facts. */
  date: string;
  models: readonly CatalogModel[];
}

/** Loads the catalog of this release. It is a module of its own, so that configurations without it do not pay for it. */
export async function loadSnapshot(): Promise<CatalogSnapshot> {
  const { default: snapshot } = await import("./snapshot/models.json", { with: { type: "json" } });
  return snapshot as unknown as CatalogSnapshot;
}
