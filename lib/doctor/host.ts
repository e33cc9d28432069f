/** Upstreams that are reached over the network. */
import type { HttpUpstreamConfig } from "../config.ts";
import { vendorOf } from "../upstreams/vendors.ts";

/** Returns the address of an upstream, without a slash at the end: the configuration's, or the vendor's own. */
export function baseUrlOf({ base_url, vendor }: HttpUpstreamConfig): string {
  return (base_url ?? vendorOf(vendor).baseUrl ?? "").replace(/\/+$/, "");
}
