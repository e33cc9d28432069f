/** Tracks the clients of the process: their wrong credentials, their concurrent requests, and their addresses. */
import type { Caller } from "../access/permissions.ts";
import { createFailedAttempts, type FailedAttempts } from "../access/failed_attempts.ts";
import { clientNetwork, isAddress, isWithin } from "../access/networks.ts";
import { GatewayError, toGatewayError } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import type { LogEntry } from "../log_events.ts";
import type { RequestRecord } from "../observe/request_record.ts";
import type { Addressed, HeaderValues } from "./head.ts";

/** Maximum number of log lines per minute about refused credentials. */
const MAX_REFUSALS_LOGGED = 60;

/** A request before it is authorized. */
export interface GuardedRequest {
  readonly request: Request;
  readonly head: HeaderValues;
  /** The URL and the head. */
  readonly addressed: Addressed;
  readonly info: Deno.ServeHandlerInfo | undefined;
  /** The gateway's id of the request, `[A-Za-z0-9]+`. */
  readonly requestId: string;
  readonly gateway: Gateway;
  /** Facts about the request for the log and the metrics. */
  readonly record: RequestRecord;
}

/** The part of a request that names its client. */
type TrackedRequest = Pick<GuardedRequest, "head" | "info" | "gateway" | "requestId">;

/** Facts about clients that outlive a request. */
export interface ClientTracker {
  readonly failures: FailedAttempts;
  /** Number of concurrent requests of each client that has any. */
  readonly running: Map<string, number>;
  /** Writes log lines about refused credentials, at a limited rate. */
  readonly refusals: RatedLog;
}

/** Creates an empty tracker. @param monotonic a monotonic clock, in milliseconds */
export function createClientTracker({ monotonic }: { monotonic: () => number }): ClientTracker {
  return {
    failures: createFailedAttempts({ monotonic }),
    running: new Map(),
    refusals: createRatedLog({ monotonic, limit: MAX_REFUSALS_LOGGED }),
  };
}

/** Headers with credentials. */
const CREDENTIALS = ["x-api-key", "authorization", "x-goog-api-key"];

/**
 * Returns the error of a failed authentication. If the request has a credential, the failure is counted for the
 * client's address. Later credentials of the address are still checked, because clients that share an address must not
 * lock each other out.
 */
export function failedAuthentication(guarded: GuardedRequest, failure: Failure): unknown {
  const hasCredential = failure.queryKey || CREDENTIALS.some((name) => guarded.head.get(name));
  const isCounted = hasCredential && toGatewayError(failure.error).kind === "unauthenticated";
  return isCounted ? refusedCredential(guarded, failure) : failure.error;
}

/** A wrong credential. */
interface Failure {
  clients: ClientTracker;
  error: unknown;
  /** The key in the query, if the route reads one. */
  queryKey?: string | null;
  /** True for an operator's key: wrong ones count even if they come from this machine. Right keys always pass. */
  isOperators?: boolean;
}

/** Counts a wrong credential for the client's address. @returns the given error, or `limited` after too many */
export function refusedCredential(
  guarded: TrackedRequest,
  { clients: { failures, refusals }, error, isOperators = false }: Failure,
): unknown {
  const { requestId, gateway: { log } } = guarded;
  const address = addressOf(guarded);
  const { retryAfterMs, isLast } = failures.failed(address, { countsOwn: isOperators });
  if (retryAfterMs !== undefined) {
    return new GatewayError("limited", "Too many invalid keys came from this address: try again later", {
      retryAfterMs,
      cause: error,
    });
  }
  if (isLast === true) {
    refusals({ level: "warn", event: "address_refused", request_id: requestId, address }, log);
  }
  return error;
}

/**
 * Counts a concurrent request of a client. A client is one key at one address, because several may share a key or an
 * address.
 * @param limit the most concurrent requests of a client
 * @returns a function that ends the count; undefined for a client without an address
 * @throws {GatewayError} `limited`
 */
export function countConcurrent(
  guarded: GuardedRequest,
  { clients, caller, limit }: { clients: ClientTracker; caller: Caller; limit: number },
): (() => void) | undefined {
  const address = addressOf(guarded);
  return address === undefined
    ? undefined
    : beginRequest(clients.running, `${caller.keyId} ${clientNetwork(address)}`, limit);
}

/** Returns the client's address, found with the trusted proxies of the configuration; undefined if it is not known. */
export function addressOf({ head, info, gateway }: Omit<TrackedRequest, "requestId">): string | undefined {
  const { trusted_proxies: trusted } = gateway.config;
  return clientAddress(peerOf(info), { forwardedFor: head.get("x-forwarded-for"), trusted });
}

/** Returns the address at the other end of the connection; undefined for a Unix socket. */
export function peerOf(info: Deno.ServeHandlerInfo | undefined): string | undefined {
  const peer = info?.remoteAddr;
  return peer?.transport === "tcp" ? peer.hostname : undefined;
}

/** Maximum number of addresses of `X-Forwarded-For` that are read. Real chains of proxies are far shorter. */
const MAX_HOPS = 32;

/**
 * Returns the client's address. It is the peer, unless the peer is a trusted proxy: then it is the right-most address
 * of `X-Forwarded-For` that is not a trusted proxy, or the left-most address if all are. Addresses that a client itself
 * puts into the header are left of those that proxies add, so they are never reached. If the header cannot be parsed up
 * to that address, the result is the peer.
 * @param peer address at the other end of the connection; undefined on a Unix socket
 * @param headers `forwardedFor`: value of `X-Forwarded-For`, to which each proxy appends the address that called it;
 * `trusted`: networks of the trusted proxies
 */
export function clientAddress(
  peer: string | undefined,
  { forwardedFor, trusted }: { forwardedFor: string | null; trusted: readonly string[] },
): string | undefined {
  if (peer === undefined || forwardedFor === null || !isWithin(peer, trusted)) return peer;
  const hops = forwardedFor.split(",").slice(-MAX_HOPS).map(bareAddress).reverse();
  for (const address of hops) {
    if (!isAddress(address)) return peer;
    if (!isWithin(address, trusted)) return address;
  }
  return hops.at(-1);
}

/** Removes the port that some proxies write, and brackets. */
function bareAddress(text: string): string {
  const address = text.trim();
  const [, inBrackets] = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(address) ?? [];
  const [, withPort] = /^([\d.]+):\d{1,5}$/.exec(address) ?? [];
  return inBrackets ?? withPort ?? address;
}

/** Time after which a client may retry, in milliseconds. It is a guess, as the end of the other requests is unknown. */
const RETRY_MS = 1_000;

/**
 * Counts a request of a client among the running ones until the returned function is called.
 * @throws {GatewayError} `limited` if `limit` requests of the client are already counted
 */
export function beginRequest(running: Map<string, number>, client: string, limit: number): () => void {
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
}

/** Length of a window of a rated log, in milliseconds. */
const WINDOW_MS = 60_000;

/** Writes a log line unless the current window is full. The next window begins with the numbers of suppressed lines. */
export type RatedLog = (entry: LogEntry, log: (entry: LogEntry) => void) => void;

/**
 * Creates a log with a limited rate.
 * @param monotonic a monotonic clock, in milliseconds
 * @param limit lines per minute
 */
export function createRatedLog({ monotonic, limit }: { monotonic: () => number; limit: number }): RatedLog {
  let windowStart = -Infinity;
  let lines = 0;
  /** Numbers of suppressed lines by event. */
  const suppressed = new Map<string, number>();
  return (entry, log) => {
    if (monotonic() - windowStart >= WINDOW_MS) {
      for (const [of, count] of suppressed) log({ level: "warn", event: "log_lines_suppressed", count, of });
      suppressed.clear();
      windowStart = monotonic();
      lines = 0;
    }
    if (++lines <= limit) log(entry);
    else suppressed.set(entry.event, (suppressed.get(entry.event) ?? 0) + 1);
  };
}
