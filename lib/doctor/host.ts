/** Upstreams that are reached over the network. */
import type { UpstreamConfig } from "../config.ts";
import { vendorOf } from "../upstreams/vendors.ts";

/** An upstream that is reached over the network. */
export type Host = Exclude<UpstreamConfig, { vendor: "embedded" }>;

/** Its address, without a slash at the end: the configuration's, or the vendor's own. */
export function baseUrlOf({ base_url, vendor }: Host): string {
  return (base_url ?? vendorOf(vendor).baseUrl ?? "").replace(/\/+$/, "");
}
