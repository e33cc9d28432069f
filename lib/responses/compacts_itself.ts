/** Decides whether the upstreams of a request support compaction themselves. */
import type { Gateway } from "../gateway.ts";
import type { JsonObject } from "../json/mod.ts";
import { listOf } from "../protocols/members.ts";
import { vendorOf } from "../upstreams/vendors.ts";

/** Returns whether every model that may answer a request supports compaction at all of its targets. */
export function compactsUpstream(
  { model, models }: JsonObject,
  gateway: Pick<Gateway, "catalog" | "config" | "upstreams">,
): boolean {
  return [model, ...listOf(models)].every((id) => typeof id !== "string" || compactsItself(id, gateway));
}

function compactsItself(
  id: string,
  { catalog, config, upstreams }: Pick<Gateway, "catalog" | "config" | "upstreams">,
): boolean {
  const model = catalog.find(id);
  return model !== undefined && model.targets.every((target) => {
    const row = config.upstreams[target.upstream];
    return row !== undefined && row.vendor !== "embedded" && vendorOf(row.vendor).compacts === true &&
      upstreams.get(target.upstream)?.protocolFor?.("responses", target) === "responses";
  });
}
