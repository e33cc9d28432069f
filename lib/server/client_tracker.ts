/** Clients of the process: credentials that they try, and concurrency per address. */
import type { Caller } from "../access/caller.ts";
import { createFailedAttempts, type FailedAttempts } from "../access/failed_attempts.ts";
import { clientNetwork } from "../access/networks.ts";
import { GatewayError, toGatewayError } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import { clientAddress } from "./client_address.ts";
import { type ClientConcurrency, createClientConcurrency } from "./client_concurrency.ts";
import type { RefusedRequest } from "./enter_refusal.ts";
import type { HeaderValues } from "./head.ts";
import { createRatedLog, type RatedLog } from "./rated_log.ts";

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

/** Creates a tracker of no clients. `monotonic`: a monotonic clock, in milliseconds. */
export function createClientTracker({ monotonic }: { monotonic: () => number }): ClientTracker {
  return {
    failures: createFailedAttempts({ monotonic }),
    concurrency: createClientConcurrency(),
    refusals: createRatedLog({ monotonic, most: MOST_REFUSALS_LOGGED }),
  };
}

/** Credentials are checked even if their address sent wrong ones: clients of one address must not lock each other out. */
export function checkCredential<T>(
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

export function peerOf(info: Deno.ServeHandlerInfo | undefined): string | undefined {
  const peer = info?.remoteAddr;
  return peer?.transport === "tcp" ? peer.hostname : undefined;
}
