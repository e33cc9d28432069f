/** Who comes in: credentials and permissions, with bounds for those who try and for those who crowd. */
import { authenticate } from "../access/authenticate.ts";
import { authenticateAdmin } from "../access/authenticate_admin.ts";
import type { Caller } from "../access/caller.ts";
import { createFailures, type Failures } from "../access/failures.ts";
import { requireEndpoint, requireProtocol } from "../access/permissions.ts";
import type { Access } from "../access/table.ts";
import { GatewayError, toGatewayError } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
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
  readonly failures: Failures;
  readonly crowd: Crowd;
  /** Lines about those who were turned away. */
  readonly refusals: RatedLog;
}

/** What a process knows of senders: `failures` and `crowd` of all its isolates, and how many these are. */
export interface SendersParts extends Partial<Pick<Senders, "failures" | "crowd">> {
  /** Milliseconds that only grow. */
  monotonic: () => number;
  isolates?: number;
}

/** Starts with nobody known, where it is not told of whoever is. */
export function createSenders({ monotonic, failures, crowd, isolates = 1 }: SendersParts): Senders {
  return {
    failures: failures ?? createFailures({ monotonic }),
    crowd: crowd ?? createCrowd(),
    refusals: createRatedLog({ monotonic, most: Math.ceil(MOST_REFUSALS_LOGGED / isolates) }),
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

/** Looks at a credential, unless too many wrong ones came from the same address: then at nothing, and no store is asked. */
function guarded<T>(
  visit: Visit,
  { senders, check }: { senders: Senders; check: () => T | Promise<T> },
): T | Promise<T> {
  const { failures } = senders;
  const address = failures.watching ? addressOf(visit) : undefined;
  if (address !== undefined) failures.admit(address, credentialOf(visit));
  const passed = (found: T) => {
    if (address !== undefined) failures.worked(address, credentialOf(visit));
    return found;
  };
  try {
    const found = check();
    return found instanceof Promise ? found.then(passed, (error) => failed(visit, { senders, error })) : passed(found);
  } catch (error) {
    return failed(visit, { senders, error });
  }
}

/** What a request has to show for itself. */
function credentialOf({ head }: Visit): string {
  return `${head.get("x-api-key") ?? ""}\n${head.get("authorization") ?? ""}`;
}

/** A request without a key is no try to find one. @throws the error itself */
async function failed(
  visit: Visit,
  { senders: { failures, refusals }, error }: { senders: Senders; error: unknown },
): Promise<never> {
  if (toGatewayError(error).kind === "unauthenticated" && credentialOf(visit) !== "\n") {
    const { requestId, gateway: { log } } = visit;
    const address = addressOf(visit);
    if (await failures.failed(address)) {
      refusals({ level: "warn", event: "address_refused", request_id: requestId, address }, log);
    }
  }
  throw error;
}

/** Counts a request among those of its address, where that is limited. What it returns counts it no longer. */
export function enter(visit: Visit, { crowd }: Senders): ReturnType<Crowd["enter"]> | undefined {
  const most = visit.gateway.config.limits.requests_per_client;
  const address = most === undefined ? undefined : addressOf(visit);
  return most === undefined || address === undefined ? undefined : crowd.enter(address, most);
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

/** What is said of a path that is not there, or that must not be seen to be. */
export function noSuchRoute(): GatewayError {
  return new GatewayError(
    "not_found",
    "Cannot find this path: no such route; a client's base URL ends with /v1, of the messages protocol with /anthropic",
  );
}
