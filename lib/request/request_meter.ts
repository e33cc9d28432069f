/** The meter of a request: every request that may cost something has one, whatever comes of it. */
import { requireCaller } from "../access/caller.ts";
import { type GatewayError, toGatewayError } from "../errors.ts";
import type { RouteContext } from "../server/router.ts";
import { writeLimitHeaders } from "../limits/headers.ts";
import { type Meter, openMeter } from "../billing/meter.ts";
import { LEFT, reasonOf } from "./reason.ts";
import { anthropicStatus } from "../protocols/error_bodies.ts";
import type { MeteredEndpoint } from "../store/ledger.ts";

/** The status of a request whose client left before there was any of its answer, as nginx has it. */
export const CLIENT_LEFT = 499;

/** A request and its endpoint. */
export interface MeteredRequest {
  request: Request;
  context: RouteContext;
  endpoint: MeteredEndpoint;
}

/**
 * Opens the meter of a request. Until it ends, the process waits for the request.
 * @param interrupt called where the process ends before the request does, with the error for the client
 */
export function openRequestMeter(
  { context: { gateway, requestId, caller }, endpoint }: MeteredRequest,
  interrupt: (reason: GatewayError) => void,
): Meter {
  const { keyId, groupName } = requireCaller(caller);
  const meter = openMeter(gateway, { id: requestId, keyId, group: groupName, endpoint });
  const removeInFlight = gateway.inFlight.add(meter, {
    kind: endpoint.startsWith("images.") ? "images" : "text",
    stop: interrupt,
  });
  const endUse = gateway.uses.begin();
  void meter.done.then(() => {
    removeInFlight();
    endUse();
  });
  return meter;
}

/** Ends the meter of a request that failed, if it is given, without a charge. @returns the error for the client */
export async function settleFailure(
  thrown: unknown,
  { request, context, endpoint, meter }: MeteredRequest & { meter?: Meter },
): Promise<GatewayError> {
  const error = toGatewayError(thrown);
  if (meter !== undefined) {
    if (request.signal.aborted) await failLeft(meter);
    else await meter.fail(statusOf(error, endpoint), reasonOf(error, context.caller));
  }
  return error.withHeaders({ "x-sluice-cost": "0" });
}

/** Ends the meter of a request whose client left before it got any of the answer. */
export function failLeft(meter: Meter): Promise<void> {
  return meter.fail(CLIENT_LEFT, LEFT);
}

/** Ends the meter of a request that failed after its response had begun. */
export function failStream(
  error: GatewayError,
  { meter, context: { caller } }: { meter: Meter; context: RouteContext },
): Promise<void> {
  return meter.fail(200, reasonOf(error, caller));
}

/**
 * Adds the limits that apply, and their statuses, to the response's headers.
 * @param failure the error of the response; absent: an answer
 */
export function addLimitHeaders(
  { context: { gateway, answerHeaders }, endpoint }: MeteredRequest,
  { meter, failure }: { meter: Meter; failure?: GatewayError | undefined },
): void {
  const words = endpoint === "messages" ? "anthropic" : "openai";
  const refusedMs = failure?.status === 429 ? failure.retryAfterMs : undefined;
  for (const header of writeLimitHeaders(meter.limitStatuses(), { now: gateway.now, words, refusedMs })) {
    answerHeaders.push(header);
  }
}

/** The status that a client gets with an error. */
export function statusOf(error: GatewayError, endpoint: MeteredEndpoint): number {
  return endpoint === "messages" ? anthropicStatus(error) : error.status;
}
