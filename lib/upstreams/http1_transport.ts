/** The way to an upstream over an HTTP/1.1 client of our own, straight on the runtime's sockets. */
import { encodeLong, isLongText } from "./long_body.ts";
import { GatewayError } from "../errors.ts";
import { Answer, type Shared } from "./http1/answer.ts";
import { ConnectionEnded } from "./http1/broken_answer.ts";
import { Call, reach } from "./http1/call.ts";
import { createDeadlines } from "./http1/deadlines.ts";
import { Heads, type Packed, packRequest, type RequestBody } from "./http1/packed.ts";
import { Pool } from "./http1/pool.ts";
import { createScratches, type Scratches } from "./http1/scratch.ts";
import type { Outgoing, Transport, TransportOptions } from "./transport.ts";

export { canServe } from "./http1/can_serve.ts";

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
export function createHttp1Transport({ idleConnections = 256, idleMs }: Http1Options = {}): Transport {
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
    }, { idleConnections, idleMs });
    pools.set(key, pool);
    const place = { pool, heads: new Heads({ host, target: pathname + search }) };
    if (places.size >= PLACES) places.clear();
    places.set(url, place);
    return place;
  }

  return {
    async send({ url, headers, body: given, bodyBytes, fresh, signal, limits }) {
      const body = isLongText(given) ? await encodeLong(given) : given;
      if (signal.aborted) throw signal.reason;
      const place = placeOf(url);
      const packed = pack(place, { headers, body, bodyBytes, scratches: shared.scratches });
      const call = new Call(signal, { deadlines, limits });
      try {
        const reached = await reach(call, { pool: place.pool, packed, fresh });
        if (call.failed) throw new ConnectionEnded();
        call.watch.head();
        const answer = new Answer(reached, { call, pool: place.pool, shared });
        refuseCompressed(answer);
        return answer;
      } catch (cause) {
        call.end();
        // Nobody has begun to read it.
        if (packed.stream?.locked === false) packed.stream.cancel().catch(() => {});
        throw call.errorFor(cause, "Cannot reach the model's upstream");
      }
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

function pack(
  { pool, heads }: Place,
  { headers, body, bodyBytes, scratches }: Pick<Outgoing, "headers" | "bodyBytes"> & {
    body: RequestBody;
    scratches: Scratches;
  },
): Packed {
  try {
    return packRequest(heads.begin({ headers, closes: !pool.keeps }), { body, bodyBytes, scratches });
  } catch (cause) {
    throw new GatewayError("upstream", "Cannot reach the model's upstream", { cause });
  }
}

function refuseCompressed(answer: Answer): void {
  const encoding = answer.header("content-encoding");
  if (encoding === null || encoding === "identity") return;
  answer.cancel();
  throw new GatewayError("upstream", "Cannot read the upstream's answer: it is compressed although nobody asked");
}
