/** The interface of transports, which send requests to upstreams. */
import type { HeaderFilter, Http1Client, Http1Request, Http1Response } from "../http1/mod.ts";
import type { AddressGuard } from "./address_guard.ts";

/**
 * Time limits of one call. `fetch` does not report connections. With it, a host counts as reached when any call
 * receives bytes from it. If that does not happen within half of `connectMs`, the transport probes the host with a
 * separate connection.
 */
export type TimeLimits = Http1Request["limits"];

/** One request to an upstream. `fetch` sends streams chunked even if their length is known. */
export type Outgoing = Http1Request;

/** An upstream's answer as it arrives. */
export type Incoming = Http1Response;

/** A body that is in memory and may be sent more than once. */
export type ResendableBody = Exclude<Outgoing["body"], ReadableStream>;

/** Sends requests to one upstream, over HTTP/1.1 or `fetch`. */
export type Transport = Http1Client;

/** Connection options of a transport. */
export interface TransportOptions {
  /**
   * Maximum number of idle connections per host. With 0, each call opens a new connection. The failure of a reused
   * connection does not show whether the request has arrived, which matters for images.
   */
  idleConnections?: number;
  /** Checks resolved addresses. Default: refuses cloud metadata addresses. */
  guard?: AddressGuard | undefined;
  /** Selects the headers that `Incoming.others` has; absent: none. */
  keepsHeader?: HeaderFilter | undefined;
}
