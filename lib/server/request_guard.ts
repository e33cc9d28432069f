/** Authenticates and authorizes requests. */
import { authenticate } from "../access/authenticate.ts";
import { authenticateAdmin } from "../access/authenticate_admin.ts";
import type { Caller } from "../access/caller.ts";
import { enterRefusal } from "./enter_refusal.ts";
import { requireEndpoint, requireProtocol } from "../access/permissions.ts";
import { type Access, isOperatorCredential } from "../access/access_table.ts";
import { GatewayError, toGatewayError } from "../errors.ts";
import { absentEndpoint } from "./absent_endpoints.ts";
import { addressOf, checkCredential, type ClientTracker, type GuardedRequest, peerOf } from "./client_tracker.ts";
import { isConsoleRow, requireReading } from "./console_guard.ts";

/** Addresses of this machine. */
const LOOPBACK = /^(?:127\.|::1$|::ffff:127\.)/;

/** Headers that only proxies send. */
const PROXY_HEADERS = ["x-forwarded-for", "x-real-ip", "forwarded", "via"];

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

/** Pages of the console belong to no caller. @throws {GatewayError} `not_found` without an admin side */
function authorizeConsole({ gateway }: GuardedRequest): undefined {
  if (gateway.config.admin === undefined) throw noSuchRoute();
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
