/** The client: connection pools by origin, and one function that sends a request. */
import { GatewayError } from "../errors.ts";
import { encodeUtf8 } from "../text.ts";
import { LARGE_BODY_BYTES, runSliced } from "../scheduler.ts";
import type { ClientState } from "./response_reader.ts";
import { exchange, Http1Exchange } from "./exchange.ts";
import { createRequestTimers } from "./request_timers.ts";
import { createBufferPool, HeadCache, type OutgoingBody, type PackedRequest, packRequest } from "./pack_request.ts";
import { ConnectionPool } from "./pool.ts";
import type { AddressPolicy } from "./dialer.ts";
import type { HeaderFilter } from "./response_head.ts";
import type { Http1Request, Http1Response } from "./types.ts";

/** Most URLs whose parts are remembered. */
const ROUTES = 1_024;

/** Connection pool and head of the requests to one URL. */
interface UrlRoute {
  pool: ConnectionPool;
  heads: HeadCache;
}

/** Options of a client's connections. */
export interface Http1Options {
  /** Decides which addresses hosts may have. */
  addresses: AddressPolicy;
  /**
   * Idle connections kept per host. With 0 each request makes its own: a kept connection that the host is just closing
   * fails in a way that does not tell whether the request arrived.
   */
  idleConnections?: number;
  /** Time that an idle connection is kept if its host does not state one, in milliseconds; absent: see `Pool`. */
  idleMs?: number;
  /** Headers of responses that are kept beside the usual ones; absent: none. */
  keepsHeader?: HeaderFilter | undefined;
}

/** Sends requests. */
export interface Http1Client {
  /**
   * @throws {GatewayError} `upstream` where no response comes, with the fault `stale` where a new connection may be all
   * that is needed; `timeout`; or the reason the request's signal was aborted with
   */
  send(request: Http1Request): Promise<Http1Response>;
  /** Closes idle connections. Requests under way go on to their ends. */
  close(): void;
}

/**
 * Makes a client. Unlike `fetch` it knows no proxies, no HTTP/2 and nothing that is not strictly HTTP/1.1. The bytes that
 * `read` answers with are valid until the next call of any method.
 */
export function createHttp1Client(
  { addresses, idleConnections = 256, idleMs, keepsHeader }: Http1Options,
): Http1Client {
  const pools = new Map<string, ConnectionPool>();
  const routes = new Map<string, UrlRoute>();
  const deadlines = createRequestTimers();
  const shared: ClientState = { scratches: createBufferPool(), released: new Set(), closed: false, keepsHeader };

  function routeOf(url: string): UrlRoute {
    const known = routes.get(url);
    if (known !== undefined) return known;
    const { protocol, hostname, host, port, pathname, search } = new URL(url);
    const tls = protocol === "https:";
    const key = `${protocol}//${host}`;
    const pool = pools.get(key) ?? new ConnectionPool({
      hostname: hostname.replace(/^\[(.*)\]$/, "$1"),
      port: port === "" ? (tls ? 443 : 80) : Number(port),
      tls,
    }, { idleConnections, idleMs, addresses });
    pools.set(key, pool);
    const route = { pool, heads: new HeadCache({ host, target: pathname + search }) };
    if (routes.size >= ROUTES) routes.clear();
    routes.set(url, route);
    return route;
  }

  function begin(
    { url, headers, bodyBytes, fresh, signal, limits }: Http1Request,
    body: OutgoingBody,
  ): Promise<Http1Response> {
    if (signal.aborted) return Promise.reject(signal.reason);
    const { pool, heads } = routeOf(url);
    let packed: PackedRequest;
    try {
      packed = packRequest(heads.begin({ headers, closes: !pool.reusesConnections }), {
        body,
        bodyBytes,
        scratches: shared.scratches,
      });
    } catch (cause) {
      return Promise.reject(new GatewayError("upstream", "Cannot reach the model's upstream", { cause }));
    }
    return exchange(new Http1Exchange(signal, { deadlines, limits }), { pool, packed, shared, fresh });
  }

  return {
    send(request) {
      const { body } = request;
      if (typeof body !== "string" || body.length <= LARGE_BODY_BYTES) return begin(request, body);
      return runSliced(encodeUtf8(body)).then((bytes) => begin(request, bytes));
    },
    close() {
      // Open exchanges complete; their connections are not kept afterwards.
      shared.closed = true;
      for (const stop of shared.released) stop();
      deadlines.close();
      for (const pool of pools.values()) pool.close();
    },
  };
}
