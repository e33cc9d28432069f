/** Options of an upstream that is reached over the network. */
import type { HeaderFilter } from "../http1/mod.ts";
import type { Quirk } from "../protocols/quirks/quirk.ts";
import type { UpstreamProtocol } from "../protocols/upstream_codec.ts";
import type { Secret } from "../secret.ts";
import type { TimeLimits, Transport } from "./transport.ts";
import type { Vendor } from "./vendors.ts";
import { ownTimeouts, type Timed } from "../catalog/timeouts.ts";

/** Options of an upstream. */
export interface HttpUpstreamOptions {
  name: string;
  vendor: Vendor;
  baseUrl: string;
  /** The protocols this one speaks, the preferred one first. */
  protocols: readonly [UpstreamProtocol, ...UpstreamProtocol[]];
  key: Secret | undefined;
  quirk: Quirk;
  /** Issuers of the signatures that the gateway's models make. */
  issuers: ReadonlySet<string>;
  limits: TimeLimits;
  transport: Transport;
  /** Headers of answers that clients get; absent: none. The transport keeps them. */
  forwards?: HeaderFilter | undefined;
}

/** Returns the issuer of the signatures in a model's answers. */
export function modelIssuer(
  model: string,
  { name, vendor, quirk }: Pick<HttpUpstreamOptions, "name" | "vendor" | "quirk">,
): string {
  return quirk.issuer?.(model) ?? vendor.issuer ?? name;
}

/** Returns the upstream's limits, overridden by those of the model and the target. */
export function limitsFor(
  call: { model: Timed; target: Timed },
  limits: TimeLimits,
  makes: "image" | "text",
): TimeLimits {
  if (call.model.timeouts === undefined && call.target.timeouts === undefined) return limits;
  const own = ownTimeouts(call);
  return {
    connectMs: own.connect_ms ?? limits.connectMs,
    firstByteMs: own.first_byte_ms ?? limits.firstByteMs,
    idleMs: own.idle_ms ?? limits.idleMs,
    totalMs: (makes === "image" ? own.images_total_ms : own.total_ms) ?? limits.totalMs,
  };
}
