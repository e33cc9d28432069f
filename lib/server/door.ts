/** Who comes in: credentials and permissions, with bounds for those who try and for those who crowd. */
import { authenticate } from "../access/authenticate.ts";
import { authenticateAdmin } from "../access/authenticate_admin.ts";
import type { Caller } from "../access/caller.ts";
import { createFailedAttempts, type FailedAttempts } from "../access/failed_attempts.ts";
import { clientNetwork } from "../access/networks.ts";
import { requireEndpoint, requireProtocol } from "../access/permissions.ts";
import type { Access } from "../access/access_table.ts";
import { GatewayError, toGatewayError } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import { absentEndpoint } from "./absent_endpoints.ts";
import { clientAddress } from "./client_address.ts";
import { createCrowd, type Crowd } from "./crowd.ts";
import type { HeaderValues } from "./head.ts";
import { createRatedLog, type RatedLog } from "./line_rate.ts";

/** Addresses of this machine. */
const LOOPBACK = /^(?:127\.|::1$|::ffff:127\.)/;

/** Headers that only proxies send. */
const PROXY_HEADERS = ["x-forwarded-for", "x-real-ip", "forwarded", "via"];

/** Lines per minute about those who were turned away. */
const MOST_REFUSALS_LOGGED = 60;

/** A request at the door. */
export interface Visit {
  readonly request: Request;
  readonly head: HeaderValues;
  readonly info: Deno.ServeHandlerInfo | undefined;
  readonly requestId: string;
  readonly gateway: Gateway;
}

/** What an app knows of those who send requests, from one request to the next. */
export interface Senders {
  readonly failures: FailedAttempts;
  readonly crowd: Crowd;
  /** Lines about those who were turned away. */
  readonly refusals: RatedLog;
}

/** Starts without any sender. `monotonic`: milliseconds that only grow. */
export function createSenders({ monotonic }: { monotonic: () => number }): Senders {
  return {
    failures: createFailedAttempts({ monotonic }),
    crowd: createCrowd(),
    refusals: createRatedLog({ monotonic, most: MOST_REFUSALS_LOGGED }),
  };
}

/**
 * Lets in whom a row of the access table lets in. Returns the caller, where the row wants one.
 * @throws {GatewayError} `unauthenticated`, `forbidden`, `limited`, `overloaded`, or `not_found` for what is not there
 */
export function admit(
  visit: Visit,
  { row, senders }: { row: Access | undefined; senders: Senders },
): Promise<Caller | undefined> | Caller | undefined {
  if (row?.credential === "admin") return admitAdmin(visit, senders);
  if (row?.credential === "metrics") return admitMetrics(visit, senders);
  return admitCaller(visit, { row, senders });
}

/** Metrics want the admin key; where there is none, they are for callers on this machine that no proxy stands in front of. */
async function admitMetrics(
  visit: Visit,
  senders: Senders,
): Promise<undefined> {
  const { head, info, gateway: { config: { admin, metrics } } } = visit;
  if (metrics.public) return;
  if (admin !== undefined) return await admitAdmin(visit, senders);
  const peer = peerOf(info);
  const isNear = peer !== undefined && LOOPBACK.test(peer);
  if (!isNear || PROXY_HEADERS.some((name) => head.get(name) !== null)) throw noSuchRoute();
}

/** The operator is nobody's key. Who is turned away is logged, never what they sent. */
async function admitAdmin(visit: Visit, senders: Senders): Promise<undefined> {
  const { request, head, requestId, gateway: { config, log } } = visit;
  const { admin } = config;
  if (admin === undefined) throw noSuchRoute();
  try {
    await guarded(visit, { senders, check: () => authenticateAdmin(head, admin) });
  } catch (error) {
    const { message } = toGatewayError(error);
    const address = addressOf(visit);
    const { method } = request;
    senders.refusals({ level: "warn", event: "admin_refused", request_id: requestId, method, address, message }, log);
    throw error;
  }
}

/** Who asks, where the route wants to know, and whether they may. */
function admitCaller(
  visit: Visit,
  { row, senders }: { row: Access | undefined; senders: Senders },
): Promise<Caller> | Caller | undefined {
  const { head, gateway } = visit;
  if (row?.credential === "none") return undefined;
  if (row?.endpoint === undefined || row.credential === "admin" || row.credential === "metrics") {
    throw new GatewayError("forbidden", "Cannot use this endpoint");
  }
  const { endpoint, protocol } = row;
  const gate = { credential: row.credential, keys: gateway.keys, address: () => addressOf(visit) };
  const found = guarded(visit, { senders, check: () => authenticate(head, gate) });
  return found instanceof Promise ? found.then(permitted) : permitted(found);

  function permitted(caller: Caller): Caller {
    if (protocol !== undefined) requireProtocol(caller, protocol);
    requireEndpoint(caller, endpoint);
    return caller;
  }
}

/** Looks at a credential, whatever its address has sent before: clients that share it must not lock each other out. */
function guarded<T>(
  visit: Visit,
  { senders, check }: { senders: Senders; check: () => T | Promise<T> },
): T | Promise<T> {
  try {
    const found = check();
    return found instanceof Promise ? found.catch((error) => failed(visit, { senders, error })) : found;
  } catch (error) {
    return failed(visit, { senders, error });
  }
}

/** What a request has to show for itself. */
function credentialOf({ head }: Visit): string {
  return `${head.get("x-api-key") ?? ""}\n${head.get("authorization") ?? ""}`;
}

/**
 * Counts a wrong credential. A request without one does not try any.
 * @throws {GatewayError} `limited` where its address has sent too many, else the error itself
 */
function failed(
  visit: Visit,
  { senders: { failures, refusals }, error }: { senders: Senders; error: unknown },
): never {
  if (toGatewayError(error).kind !== "unauthenticated" || credentialOf(visit) === "\n") throw error;
  const { requestId, gateway: { log } } = visit;
  const address = addressOf(visit);
  const { retryAfterMs, isLast } = failures.failed(address);
  if (retryAfterMs !== undefined) {
    throw new GatewayError("limited", "Too many wrong keys came from this address: try again later", {
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
 * Counts a request among those of its client, where that is limited: one key at one address, as others may share either.
 * What it returns counts it no longer.
 */
export function enter(
  visit: Visit,
  { crowd, caller }: Pick<Senders, "crowd"> & { caller: Caller },
): (() => void) | undefined {
  const most = visit.gateway.config.limits.requests_per_client;
  const address = most === undefined ? undefined : addressOf(visit);
  if (most === undefined || address === undefined) return undefined;
  return crowd.enter(`${caller.keyId} ${clientNetwork(address)}`, most);
}

/** Where the client is; absent where nobody knows. */
export function addressOf({ head, info, gateway }: Visit): string | undefined {
  return clientAddress({
    peer: peerOf(info),
    forwardedFor: head.get("x-forwarded-for"),
    trusted: gateway.config.trusted_proxies,
  });
}

function peerOf(info: Deno.ServeHandlerInfo | undefined): string | undefined {
  const peer = info?.remoteAddr;
  return peer?.transport === "tcp" ? peer.hostname : undefined;
}

/** The error for a path that is not there, or that must not be seen to be. `path`: absent where it must not be judged. */
export function noSuchRoute(path?: string): GatewayError {
  const absent = path === undefined ? undefined : absentEndpoint(path);
  return new GatewayError(
    "not_found",
    absent === undefined
      ? "Cannot find this path: no such route; a client's base URL ends with /v1, of the messages protocol with /anthropic"
      : `Cannot use this endpoint: Sluice does not have ${absent}`,
  );
}
