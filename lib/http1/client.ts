/** The HTTP/1.1 client: sends requests over connection pools, one pool per origin. */
import { GatewayError } from "../errors.ts";
import { hostAddressOf } from "../host_address.ts";
import { encodeUtf8 } from "../text.ts";
import { LARGE_BODY_BYTES, runSliced } from "../scheduler.ts";
import { type ClientState, Http1Exchange } from "./exchange.ts";
import { PhaseTimers } from "../phase_timers.ts";
import { type OutgoingBody, type PackedRequest, packRequest } from "./pack_request.ts";
import { ConnectionPool } from "./pool.ts";
import type { AddressPolicy } from "./dialer.ts";
import type { HeaderFilter } from "./response_head.ts";
import type { Http1Request, Http1Response } from "./types.ts";

/** Maximum number of URLs whose routes are cached. */
const MAX_ROUTES = 1_024;

/** Connection pool and address of the requests to one URL. */
interface UrlRoute {
  pool: ConnectionPool;
  host: string;
  target: string;
}

/** Options of a client's connections. */
export interface Http1Options {
  /** Decides which addresses hosts may have. */
  addresses: AddressPolicy;
  /**
   * Maximum number of idle connections per host. With 0, each request opens a new connection. That avoids requests on a
   * connection which the host is just closing: their errors do not show whether the request has arrived.
   */
  idleConnections?: number;
  /** Time that an idle connection is kept if its host announces no timeout, in milliseconds; absent: see pool.ts. */
  idleMs?: number;
  /** Selects response headers that are kept besides `RESPONSE_HEADERS`; absent: none. */
  keepsHeader?: HeaderFilter | undefined;
}

/** Sends requests. */
export interface Http1Client {
  /**
   * Sends a request. Resolves when the head of the response has arrived.
   * @throws {GatewayError} `upstream` without a response, with the fault `stale` if a new connection may help;
   * `timeout`; or the reason with which the request's signal was aborted
   */
  send(request: Http1Request): Promise<Http1Response>;
  /** Closes idle connections. Requests that have begun continue. */
  close(): void;
}

/**
 * Creates a client. Unlike `fetch`, it supports no proxies, no HTTP/2, and no deviation from HTTP/1.1. The bytes that
 * `Http1Response.read` returns are valid until the next call of any method of the response.
 */
export function createHttp1Client(
  { addresses, idleConnections = 256, idleMs, keepsHeader }: Http1Options,
): Http1Client {
  const pools = new Map<string, ConnectionPool>();
  const routes = new Map<string, UrlRoute>();
  const timers = new PhaseTimers({ lingers: true });
  const shared: ClientState = { timers, released: new Set(), closed: false, keepsHeader };

  function routeOf(url: string): UrlRoute {
    const cached = routes.get(url);
    if (cached !== undefined) return cached;
    const parsed = new URL(url);
    const { origin, host, pathname, search } = parsed;
    const pool = pools.get(origin) ??
      new ConnectionPool(hostAddressOf(parsed), { idleConnections, idleMs, addresses });
    pools.set(origin, pool);
    const route = { pool, host, target: pathname + search };
    if (routes.size >= MAX_ROUTES) routes.clear();
    routes.set(url, route);
    return route;
  }

  function begin(
    { url, headers, bodyBytes, fresh, signal, limits }: Http1Request,
    body: OutgoingBody,
  ): Promise<Http1Response> {
    if (signal.aborted) return Promise.reject(signal.reason);
    const { pool, host, target } = routeOf(url);
    let packed: PackedRequest;
    try {
      packed = packRequest({ target, host, headers, closes: !pool.reusesConnections, body, bodyBytes });
    } catch (cause) {
      return Promise.reject(new GatewayError("upstream", "Cannot reach the model's upstream", { cause }));
    }
    return new Http1Exchange({ signal, limits }, { pool, shared }).send(packed, fresh);
  }

  return {
    send(request) {
      const { body } = request;
      if (typeof body !== "string" || body.length <= LARGE_BODY_BYTES) return begin(request, body);
      return runSliced(encodeUtf8(body)).then((bytes) => begin(request, bytes));
    },
    close() {
      // Open exchanges continue. Their connections are closed afterwards.
      shared.closed = true;
      for (const stop of shared.released) stop();
      timers.close();
      for (const pool of pools.values()) pool.close();
    },
  };
}
