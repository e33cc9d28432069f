/** The way to an upstream over an HTTP/1.1 client of our own, straight on the runtime's sockets. */
import { encodeLong, isLongText } from "./long_body.ts";
import { GatewayError } from "../errors.ts";
import type { Shared } from "../http1/answer.ts";
import { Call, exchange } from "../http1/call.ts";
import { createDeadlines } from "../http1/deadlines.ts";
import { Heads, type Packed, packRequest, type RequestBody } from "../http1/packed.ts";
import { Pool } from "../http1/pool.ts";
import { createScratches } from "../http1/scratch.ts";
import type { Incoming, Outgoing, Transport, TransportOptions } from "./transport.ts";

export { canServe } from "../http1/can_serve.ts";

/** Most addresses that are remembered in parts. */
const PLACES = 1_024;

/** Where a request goes. */
interface Place {
  pool: Pool;
  heads: Heads;
}

/**
 * A transport over connections of our own. What `fetch` does and this does not: proxies, HTTP/2 and whatever is not
 * strictly HTTP/1.1; `canServe` tells what can be known before. The bytes that `read` answers with are valid until the next
 * call of any method.
 */
export function createHttp1Transport({ idleConnections = 256, idleMs, guard }: Http1Options = {}): Transport {
  const pools = new Map<string, Pool>();
  const places = new Map<string, Place>();
  const deadlines = createDeadlines();
  const shared: Shared = { scratches: createScratches(), released: new Set(), closed: false };

  function placeOf(url: string): Place {
    const known = places.get(url);
    if (known !== undefined) return known;
    const { protocol, hostname, host, port, pathname, search } = new URL(url);
    const tls = protocol === "https:";
    const key = `${protocol}//${host}`;
    const pool = pools.get(key) ?? new Pool({
      hostname: hostname.replace(/^\[(.*)\]$/, "$1"),
      port: port === "" ? (tls ? 443 : 80) : Number(port),
      tls,
    }, { idleConnections, idleMs, guard });
    pools.set(key, pool);
    const place = { pool, heads: new Heads({ host, target: pathname + search }) };
    if (places.size >= PLACES) places.clear();
    places.set(url, place);
    return place;
  }

  function begin(
    { url, headers, bodyBytes, fresh, signal, limits }: Outgoing,
    body: RequestBody,
  ): Promise<Incoming> {
    if (signal.aborted) return Promise.reject(signal.reason);
    const { pool, heads } = placeOf(url);
    let packed: Packed;
    try {
      packed = packRequest(heads.begin({ headers, closes: !pool.keeps }), {
        body,
        bodyBytes,
        scratches: shared.scratches,
      });
    } catch (cause) {
      return Promise.reject(new GatewayError("upstream", "Cannot reach the model's upstream", { cause }));
    }
    return exchange(new Call(signal, { deadlines, limits }), { pool, packed, shared, fresh });
  }

  return {
    send(outgoing) {
      const { body } = outgoing;
      return isLongText(body) ? encodeLong(body).then((bytes) => begin(outgoing, bytes)) : begin(outgoing, body);
    },
    close() {
      // What is under way goes on to its end, without a connection being kept afterwards.
      shared.closed = true;
      for (const stop of shared.released) stop();
      deadlines.close();
      for (const pool of pools.values()) pool.close();
    },
  };
}

/** How such a transport treats its connections. */
export interface Http1Options extends TransportOptions {
  /** How long an idle connection is kept whose host does not say, in milliseconds; absent: see `Pool`. */
  idleMs?: number;
}
