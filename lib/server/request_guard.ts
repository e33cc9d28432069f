/** Authenticates and authorizes requests, and limits failed attempts and concurrency per address. */
import { authenticate } from "../access/authenticate.ts";
import { authenticateAdmin } from "../access/authenticate_admin.ts";
import type { Caller } from "../access/caller.ts";
import { enterRefusal, type RefusedRequest } from "./enter_refusal.ts";
import { createFailedAttempts, type FailedAttempts } from "../access/failed_attempts.ts";
import { clientNetwork } from "../access/networks.ts";
import { requireEndpoint, requireProtocol } from "../access/permissions.ts";
import { type Access, isOperatorCredential } from "../access/access_table.ts";
import { GatewayError, toGatewayError } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import { absentEndpoint } from "./absent_endpoints.ts";
import { clientAddress } from "./client_address.ts";
import { type ClientConcurrency, createClientConcurrency } from "./client_concurrency.ts";
import { isConsoleRow, requireReading, sessionOf } from "./console_guard.ts";
import type { HeaderValues } from "./head.ts";
import { createRatedLog, type RatedLog } from "./rated_log.ts";

/** Addresses of this machine. */
const LOOPBACK = /^(?:127\.|::1$|::ffff:127\.)/;

/** Headers that only proxies send. */
const PROXY_HEADERS = ["x-forwarded-for", "x-real-ip", "forwarded", "via"];

/** Log lines per minute about refused credentials. */
const MOST_REFUSALS_LOGGED = 60;

/** A request before it is authorized. */
export interface GuardedRequest {
  readonly request: Request;
  readonly head: HeaderValues;
  readonly info: Deno.ServeHandlerInfo | undefined;
  readonly requestId: string;
  readonly gateway: Gateway;
  readonly record: RefusedRequest["record"];
}

/** Facts about clients that outlive a request. */
export interface ClientTracker {
  readonly failures: FailedAttempts;
  readonly concurrency: ClientConcurrency;
  /** Log lines about refused credentials. */
  readonly refusals: RatedLog;
}

/** Starts without any sender. `monotonic`: milliseconds that only grow. */
export function createClientTracker({ monotonic }: { monotonic: () => number }): ClientTracker {
  return {
    failures: createFailedAttempts({ monotonic }),
    concurrency: createClientConcurrency(),
    refusals: createRatedLog({ monotonic, most: MOST_REFUSALS_LOGGED }),
  };
}

/**
 * Authorizes a request by its row of the access table. Returns the caller if the row requires one.
 * @throws {GatewayError} `unauthenticated`, `forbidden`, `limited`, `overloaded`, or `not_found` for an unknown path
 */
export function authorizeRequest(
  guarded: GuardedRequest,
  { row, clients }: { row: Access | undefined; clients: ClientTracker },
): Promise<Caller | undefined> | Caller | undefined {
  if (row?.credential === "admin") return authorizeAdmin(guarded, clients);
  if (isConsoleRow(row)) return authorizeConsole(guarded);
  if (row?.credential === "metrics") return authorizeMetrics(guarded, clients);
  return authorizeCaller(guarded, { row, clients });
}

/**
 * Metrics require the admin key. Without one they are served only to callers on this machine that no proxy is in front
 * of.
 */
async function authorizeMetrics(
  guarded: GuardedRequest,
  clients: ClientTracker,
): Promise<undefined> {
  const { head, info, gateway: { config: { admin, metrics } } } = guarded;
  if (metrics.public) return;
  if (admin !== undefined) return await authorizeAdmin(guarded, clients);
  const peer = peerOf(info);
  const isNear = peer !== undefined && LOOPBACK.test(peer);
  if (!isNear || PROXY_HEADERS.some((name) => head.get(name) !== null)) throw noSuchRoute();
}

/** The admin key belongs to no caller. Refusals are logged without the credential. */
async function authorizeAdmin(guarded: GuardedRequest, clients: ClientTracker): Promise<undefined> {
  const { request, head, requestId, gateway: { config, log } } = guarded;
  const { admin } = config;
  if (admin === undefined) throw noSuchRoute();
  try {
    const role = await checkCredential(guarded, { clients, check: () => authenticateAdmin(head, admin) });
    if (role === "viewer") requireReading(request);
  } catch (error) {
    const { message } = toGatewayError(error);
    const address = addressOf(guarded);
    const { method } = request;
    clients.refusals({ level: "warn", event: "admin_refused", request_id: requestId, method, address, message }, log);
    throw error;
  }
}

/** Pages of the console belong to no caller. @throws {GatewayError} `not_found` without an admin side, `forbidden` */
function authorizeConsole({ request, head, gateway }: GuardedRequest): undefined {
  if (gateway.config.admin === undefined) throw noSuchRoute();
  if (sessionOf({ head, gateway })?.role === "viewer") requireReading(request);
}

/** Finds the caller, where the route needs one, and checks its permissions. */
function authorizeCaller(
  guarded: GuardedRequest,
  { row, clients }: { row: Access | undefined; clients: ClientTracker },
): Promise<Caller> | Caller | undefined {
  const { head, gateway } = guarded;
  if (row?.credential === "none") return undefined;
  if (row?.endpoint === undefined || isOperatorCredential(row.credential) || row.credential === "metrics") {
    throw new GatewayError("forbidden", "Cannot use this endpoint");
  }
  const { endpoint, protocol } = row;
  const gate = { credential: row.credential, keys: gateway.keys, address: () => addressOf(guarded) };
  const found = checkCredential(guarded, { clients, check: () => authenticate(head, gate) });
  return found instanceof Promise ? found.then(permitted) : permitted(found);

  function permitted(caller: Caller): Caller | Promise<Caller> {
    try {
      if (protocol !== undefined) requireProtocol(caller, protocol);
      requireEndpoint(caller, endpoint);
      return caller;
    } catch (error) {
      return enterRefusal(error, { ...guarded, caller });
    }
  }
}

/** Checks a credential also where its address sent wrong ones: clients that share it must not lock each other out. */
function checkCredential<T>(
  guarded: GuardedRequest,
  { clients, check }: { clients: ClientTracker; check: () => T | Promise<T> },
): T | Promise<T> {
  try {
    const found = check();
    return found instanceof Promise ? found.catch((error) => countFailure(guarded, { clients, error })) : found;
  } catch (error) {
    return countFailure(guarded, { clients, error });
  }
}

/** The credentials of a request, as it sends them. */
function credentialOf({ head }: GuardedRequest): string {
  return `${head.get("x-api-key") ?? ""}\n${head.get("authorization") ?? ""}`;
}

/** Counts a wrong credential of a request that sends one. @throws {GatewayError} as `refuseCredential` */
function countFailure(guarded: GuardedRequest, { clients, error }: { clients: ClientTracker; error: unknown }): never {
  if (toGatewayError(error).kind !== "unauthenticated" || credentialOf(guarded) === "\n") throw error;
  refuseCredential(guarded, { clients, error });
}

/**
 * Refuses a wrong credential, and counts it for the address.
 * @throws {GatewayError} `limited` if the address has sent too many, else the error itself
 */
export function refuseCredential(
  guarded: GuardedRequest,
  { clients: { failures, refusals }, error }: { clients: ClientTracker; error: unknown },
): never {
  const { requestId, gateway: { log } } = guarded;
  const address = addressOf(guarded);
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
 * The function that it returns ends that.
 */
export function countConcurrent(
  guarded: GuardedRequest,
  { concurrency, caller }: Pick<ClientTracker, "concurrency"> & { caller: Caller },
): (() => void) | undefined {
  const most = guarded.gateway.config.limits.requests_per_client;
  const address = most === undefined ? undefined : addressOf(guarded);
  if (most === undefined || address === undefined) return undefined;
  return concurrency.begin(`${caller.keyId} ${clientNetwork(address)}`, most);
}

/** The client's address; absent where it is not known. */
export function addressOf({ head, info, gateway }: GuardedRequest): string | undefined {
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
