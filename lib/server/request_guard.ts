/** Authenticates and authorizes requests. */
import { authenticate, type AuthenticationOptions } from "../access/authenticate.ts";
import { authenticateAdmin } from "../access/authenticate_admin.ts";
import { type Caller, requireEndpoint, requireProtocol } from "../access/permissions.ts";
import type { Access, Credential } from "../access/access_table.ts";
import { GatewayError, toGatewayError } from "../errors.ts";
import { absentEndpoint, meantEndpoint } from "./absent_endpoints.ts";
import { addressOf, type ClientTracker, failedAuthentication, type GuardedRequest } from "./client_tracker.ts";
import { hasConsole, isFromThisMachine, requireReading, sessionOf } from "./console_guard.ts";
import { Meter } from "../billing/meter.ts";
import { endpointOf } from "../observe/request_record.ts";
import { statusFor } from "../protocols/error_bodies.ts";
import { readTarget } from "./route_matcher.ts";
import { METERED_ENDPOINTS } from "../store/ledger.ts";

/**
 * Authorizes a request by its row of the access table.
 * @returns the caller; undefined if the row needs no API key
 * @throws {GatewayError} `unauthenticated`, `forbidden`, `limited`, `overloaded`, or `not_found` for a hidden path
 */
export function authorizeRequest(
  guarded: GuardedRequest,
  { row, clients }: { row: Access | undefined; clients: ClientTracker },
): Promise<Caller | undefined> | Caller | undefined {
  switch (row?.credential) {
    case "none":
      return undefined;
    case "bearer":
    case "api_key":
    case "google_key":
      return authorizeCaller(guarded, { ...row, credential: row.credential }, clients);
    case "admin":
      return authorizeAdmin(guarded, clients);
    case "session":
    case "sign_in":
      if (!hasConsole(guarded)) throw noSuchRoute();
      return undefined;
    case "metrics":
      return authorizeMetrics(guarded, clients);
    case undefined:
      throw new GatewayError("forbidden", "Cannot use this endpoint");
  }
}

/**
 * Authorizes a request for metrics: they are public, or require the admin key. If neither is configured, only requests
 * from this machine get them.
 */
function authorizeMetrics(guarded: GuardedRequest, clients: ClientTracker): undefined {
  const { head, info, gateway: { config: { admin, metrics } } } = guarded;
  if (metrics.public) return;
  if (admin !== undefined) return authorizeAdmin(guarded, clients);
  if (!isFromThisMachine({ head, info })) throw noSuchRoute();
}

/** Checks an operator's key, which belongs to no caller. Refusals are logged without the key. */
function authorizeAdmin(guarded: GuardedRequest, clients: ClientTracker): undefined {
  const { request, requestId, gateway: { config, log } } = guarded;
  const { admin } = config;
  if (admin === undefined) throw noSuchRoute();
  try {
    if (authenticateAdmin(guarded.head, admin) === "viewer") requireReading(request);
  } catch (thrown) {
    const error = failedAuthentication(guarded, { clients, error: thrown, isOperators: true });
    const { message } = toGatewayError(error);
    const address = addressOf(guarded);
    const { method } = request;
    clients.refusals({ level: "warn", event: "admin_refused", request_id: requestId, method, address, message }, log);
    throw error;
  }
}

/**
 * Returns a function that checks whether an operator's credentials are still valid, under the configuration at that
 * time. The headers are copied, because those of the request may not be readable later.
 */
export function operatorCheck(
  { head }: Pick<GuardedRequest, "head">,
  { credential, gateway: currentGateway }: {
    credential: "admin" | "session";
    gateway: () => GuardedRequest["gateway"];
  },
): () => Promise<boolean> {
  const copy = new Headers();
  for (const name of ["authorization", "x-api-key", "cookie"]) {
    const value = head.get(name);
    if (value !== null) copy.set(name, value);
  }
  return async () => {
    const gateway = currentGateway();
    if (credential === "session") return await sessionOf({ head: copy, gateway }) !== undefined;
    const { admin } = gateway.config;
    try {
      return admin !== undefined && authenticateAdmin(copy, admin) !== undefined;
    } catch {
      return false;
    }
  };
}

/** Finds the caller and checks its permissions. */
async function authorizeCaller(
  guarded: GuardedRequest,
  { credential, endpoint, protocol }: Access & { credential: Credential },
  clients: ClientTracker,
): Promise<Caller> {
  const { head, record, gateway: { keys } } = guarded;
  if (endpoint === undefined) throw new GatewayError("forbidden", "Cannot use this endpoint");
  const queryKey = () => new URLSearchParams(readTarget(guarded.addressed).query).get("key");
  const found: AuthenticationOptions["found"] = ({ id, name, group }) => {
    record.keyId = id;
    record.keyName = name;
    record.group = group;
  };
  let caller: Caller;
  try {
    caller = await authenticate(head, { credential, keys, queryKey, found, address: () => addressOf(guarded) });
  } catch (error) {
    throw failedAuthentication(guarded, { clients, error, queryKey: credential === "google_key" ? queryKey() : null });
  }
  try {
    if (protocol !== undefined) requireProtocol(caller, protocol);
    requireEndpoint(caller, endpoint);
    return caller;
  } catch (error) {
    return await enterRefusal(error, { ...guarded, caller });
  }
}

/**
 * Returns the error for a path that does not exist or must appear not to exist.
 * @param meant the path that the client may mean
 */
export function noSuchRoute(meant?: string): GatewayError {
  const question = meant === undefined ? "." : `; did you mean ${meant}?`;
  return new GatewayError(
    "not_found",
    `Cannot find this path: there is no such route${question} The base URL of OpenAI ` +
      "clients ends with /v1, that of Anthropic clients with /anthropic, and that of Gemini clients with the host or port",
  );
}

/** Returns the error for a path without a route. It names the endpoint that a client means or that Sluice lacks. */
export function unknownPath(path: string, isGoogles: boolean): GatewayError {
  const absent = absentEndpoint(path, isGoogles);
  if (absent === undefined) return noSuchRoute(meantEndpoint(path));
  return new GatewayError("not_found", `Cannot use this endpoint: Sluice does not have ${absent}`);
}

/** Enters a refused request in the ledger if its endpoint has ledger entries. @throws the given error in any case */
export async function enterRefusal(
  error: unknown,
  { gateway, requestId, record, caller: { keyId, groupName } }:
    & Pick<GuardedRequest, "gateway" | "requestId" | "record">
    & { caller: Caller },
): Promise<never> {
  const observed = endpointOf(record);
  const endpoint = METERED_ENDPOINTS.find((metered) => metered === observed);
  if (!(error instanceof GatewayError) || endpoint === undefined) throw error;
  const meter = new Meter(gateway, { id: requestId, keyId, group: groupName, endpoint, record });
  await meter.fail(statusFor(error, endpoint), {
    code: error.kind === "forbidden" ? "permission" : "busy",
    ...error.refusal,
  });
  throw error;
}
