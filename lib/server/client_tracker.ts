/** Clients of the process: credentials that they try, and concurrency per address. */
import type { Caller } from "../access/permissions.ts";
import { createFailedAttempts, type FailedAttempts } from "../access/failed_attempts.ts";
import { clientNetwork, isAddress, isWithin } from "../access/networks.ts";
import { GatewayError, toGatewayError } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import type { LogEntry } from "../log_events.ts";
import type { RequestRecord } from "../observe/request_record.ts";
import type { HeaderValues } from "./head.ts";

/** Log lines per minute about refused credentials. */
const MAX_REFUSALS_LOGGED = 60;

/** A request before it is authorized. */
export interface GuardedRequest {
  readonly request: Request;
  readonly head: HeaderValues;
  readonly info: Deno.ServeHandlerInfo | undefined;
  readonly requestId: string;
  readonly gateway: Gateway;
  readonly record: RequestRecord;
}

/** Facts about clients that outlive a request. */
export interface ClientTracker {
  readonly failures: FailedAttempts;
  readonly concurrency: ClientConcurrency;
  /** Log lines about refused credentials. */
  readonly refusals: RatedLog;
}

/** Creates a tracker of no clients. `monotonic`: a monotonic clock, in milliseconds. */
export function createClientTracker({ monotonic }: { monotonic: () => number }): ClientTracker {
  return {
    failures: createFailedAttempts({ monotonic }),
    concurrency: createClientConcurrency(),
    refusals: createRatedLog({ monotonic, limit: MAX_REFUSALS_LOGGED }),
  };
}

/** True if a request has a header with a credential. */
function sendsCredential({ head }: GuardedRequest): boolean {
  return ["x-api-key", "authorization", "x-goog-api-key"].some((name) => Boolean(head.get(name)));
}

/**
 * Counts a wrong credential of a request that sends one. Credentials are checked even if their address sent wrong ones:
 * clients of one address must not lock each other out.
 * @throws {GatewayError} as `refuseCredential`
 */
export function countFailure(
  guarded: GuardedRequest,
  failure: Failure,
): never {
  if (toGatewayError(failure.error).kind !== "unauthenticated") throw failure.error;
  if (!sendsCredential(guarded) && !failure.queryKey) throw failure.error;
  refuseCredential(guarded, failure);
}

/** A wrong credential. */
interface Failure {
  clients: ClientTracker;
  error: unknown;
  /** The key in the query, where the route reads one. */
  queryKey?: string | null;
  /** True for an operator's key: it counts from this machine, too. A right key passes in any case. */
  isOperators?: boolean;
}

/**
 * Refuses a wrong credential, and counts it for the address.
 * @throws {GatewayError} `limited` if the address has sent too many, else the error itself
 */
export function refuseCredential(
  guarded: GuardedRequest,
  { clients: { failures, refusals }, error, isOperators = false }: Failure,
): never {
  const { requestId, gateway: { log } } = guarded;
  const address = addressOf(guarded);
  const { retryAfterMs, isLast } = failures.failed(address, { countsOwn: isOperators });
  if (retryAfterMs !== undefined) {
    throw new GatewayError("limited", "Too many invalid keys came from this address: try again later", {
      retryAfterMs,
      cause: error,
    });
  }
  if (isLast === true) {
    refusals({ level: "warn", event: "address_refused", request_id: requestId, address }, log);
  }
  throw error;
}

/**
 * Counts a request among those of its client: one key at one address, as others may share either.
 * @param limit the limit of concurrent requests per client
 * @returns the function that ends the count; undefined for a client without an address
 * @throws {GatewayError} `limited`
 */
export function countConcurrent(
  guarded: GuardedRequest,
  { clients, caller, limit }: { clients: ClientTracker; caller: Caller; limit: number },
): (() => void) | undefined {
  const address = addressOf(guarded);
  return address === undefined
    ? undefined
    : clients.concurrency.begin(`${caller.keyId} ${clientNetwork(address)}`, limit);
}

/** The client's address; absent where it is not known. */
export function addressOf({ head, info, gateway }: GuardedRequest): string | undefined {
  return clientAddress({
    peer: peerOf(info),
    forwardedFor: head.get("x-forwarded-for"),
    trusted: gateway.config.trusted_proxies,
  });
}

export function peerOf(info: Deno.ServeHandlerInfo | undefined): string | undefined {
  const peer = info?.remoteAddr;
  return peer?.transport === "tcp" ? peer.hostname : undefined;
}

/** Most addresses of `X-Forwarded-For` that are read. Real chains of proxies are far shorter. */
const MAX_HOPS = 32;

/** The peer, the forwarding header, and the trusted proxies. */
export interface ForwardedPeer {
  /** Address at the other end of the connection; absent where there is none, as on a Unix socket. */
  peer: string | undefined;
  /** Value of `X-Forwarded-For`: each proxy adds the address it was called from at the end. */
  forwardedFor: string | null;
  /** Networks of the proxies whose word counts. */
  trusted: readonly string[];
}

/**
 * Returns the client's address. It is the peer, unless the peer is a trusted proxy: then it is the right-most address
 * of `X-Forwarded-For` that is not a trusted proxy, or the left-most address if all are. Addresses that a client itself
 * puts into the header are left of those that proxies add, so they are never reached. If the header cannot be parsed up
 * to that address, the result is the peer.
 */
export function clientAddress({ peer, forwardedFor, trusted }: ForwardedPeer): string | undefined {
  if (peer === undefined || forwardedFor === null || !isWithin(peer, trusted)) return peer;
  const hops = forwardedFor.split(",").slice(-MAX_HOPS).map(bareAddress).reverse();
  for (const hop of hops) {
    if (!isAddress(hop)) return peer;
    if (!isWithin(hop, trusted)) return hop;
  }
  return hops.at(-1);
}

/** Without the port that some proxies write, and without brackets. */
function bareAddress(text: string): string {
  const hop = text.trim();
  const [, inBrackets] = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(hop) ?? [];
  const [, withPort] = /^([\d.]+):\d{1,5}$/.exec(hop) ?? [];
  return inBrackets ?? withPort ?? hop;
}

/** When to try again, in milliseconds: the end of the others is not known. */
const RETRY_MS = 1_000;

/** Concurrent requests by client. */
export interface ClientConcurrency {
  /** Counts a request, until the function that it returns is called. @throws {GatewayError} `limited` where `limit` are counted already */
  begin(client: string, limit: number): () => void;
}

/** Only clients with concurrent requests are kept. */
export function createClientConcurrency(): ClientConcurrency {
  const running = new Map<string, number>();
  return {
    begin(client, limit) {
      const count = running.get(client) ?? 0;
      if (count >= limit) {
        const message = `Too many requests at once: ${limit} with this API key from this address are running`;
        throw new GatewayError("limited", message, { retryAfterMs: RETRY_MS });
      }
      running.set(client, count + 1);
      let hasEnded = false;
      return () => {
        if (hasEnded) return;
        hasEnded = true;
        const remaining = (running.get(client) ?? 1) - 1;
        if (remaining > 0) running.set(client, remaining);
        else running.delete(client);
      };
    },
  };
}

/** Length of a window, in milliseconds. */
const WINDOW_MS = 60_000;

/** Writes a line while the window has room. The first line of the next window says how many were left out. */
export type RatedLog = (entry: LogEntry, log: (entry: LogEntry) => void) => void;

/** Starts a window with the first line. `limit`: lines in a window; `monotonic`: milliseconds that only grow. */
export function createRatedLog({ monotonic, limit }: { monotonic: () => number; limit: number }): RatedLog {
  let since = -Infinity;
  let lines = 0;
  return (entry, log) => {
    if (monotonic() - since >= WINDOW_MS) {
      if (lines > limit) log({ level: "warn", event: "log_lines_suppressed", count: lines - limit, of: entry.event });
      since = monotonic();
      lines = 0;
    }
    if (++lines <= limit) log(entry);
  };
}
