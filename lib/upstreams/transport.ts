/** The transport interface: how requests reach an upstream. */
import { GatewayError } from "../errors.ts";
import type { HeaderFilter, Http1Request, Http1Response } from "../http1/mod.ts";
import type { AddressGuard } from "./address_guard.ts";

/**
 * Time limits of one call. `fetch` does not report connections, so a host counts as reached once any call got bytes from
 * it. After half of `connectMs` without that, the transport probes it with a connection of its own.
 */
export type TimeLimits = Http1Request["limits"];

/** One request to an upstream. `fetch` sends streams chunked even if their length is known. */
export type Outgoing = Http1Request;

/** An upstream's answer as it arrives. */
export type Incoming = Http1Response;

/** A body that is in memory and may be sent more than once. */
export type ResendableBody = Exclude<Outgoing["body"], ReadableStream>;

/** Sends requests to one upstream. */
export interface Transport {
  /**
   * @throws {GatewayError} `upstream` without an answer; `timeout`; or the reason of the call's signal
   */
  send(outgoing: Outgoing): Promise<Incoming>;
  close(): void;
}

/** Connection options of a transport. */
export interface TransportOptions {
  /**
   * Idle connections kept per host. With 0 each call opens a new one: a failure of a kept connection does not tell whether
   * the request arrived, which matters for images.
   */
  idleConnections?: number;
  /** Checks resolved addresses. Default: refuses cloud metadata addresses. */
  guard?: AddressGuard | undefined;
  /** Headers of answers that `Incoming.others` has; absent: none. */
  keepsHeader?: HeaderFilter | undefined;
}

/** True if `send` failed before a connection existed, so the request cannot have arrived. */
export function wasNeverSent(error: unknown): boolean {
  return error instanceof GatewayError && error.fault === "unreachable";
}
