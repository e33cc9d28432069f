/** Every request that may cost something runs under a meter, whatever comes of it. */
import { requireCaller } from "../access/caller.ts";
import { type GatewayError, toGatewayError } from "../errors.ts";
import type { RouteContext } from "../server/router.ts";
import { writeLimitHeaders } from "../limits/headers.ts";
import { type Meter, openMeter } from "../billing/meter.ts";
import { anthropicStatus } from "../protocols/error_bodies.ts";
import type { MeteredEndpoint } from "../store/ledger.ts";

/** A request under a meter. */
export interface Metered {
  meter: Meter;
  /** Given up where the process ends before the request does; its reason is what the client is told. */
  interrupted: AbortSignal;
  /** Somebody else ends the meter from here on, also where the request fails for this client. */
  handOver(): void;
}

/**
 * Does the work of a request under a meter. Work that throws ends it without a charge; work that gives a response sees to
 * its end itself. The limits that apply are in the response's headers.
 */
export async function metered(
  request: Request,
  { context, endpoint }: { context: RouteContext; endpoint: MeteredEndpoint },
  work: (metered: Metered) => Promise<Response>,
): Promise<Response> {
  const { gateway, requestId, caller, answerHeaders } = context;
  const { keyId, groupName } = requireCaller(caller);
  const meter = openMeter(gateway, { id: requestId, keyId, group: groupName, endpoint });
  const interrupted = new AbortController();
  const endRunning = gateway.running.add(meter, {
    kind: endpoint.startsWith("images.") ? "images" : "text",
    stop: (reason) => interrupted.abort(reason),
  });
  const endUse = gateway.uses.begin();
  void meter.done.then(() => {
    endRunning();
    endUse();
  });
  let own = true;
  try {
    return await work({
      meter,
      interrupted: interrupted.signal,
      handOver: () => void (own = false),
    });
  } catch (thrown) {
    const error = toGatewayError(thrown);
    if (own) await meter.fail(request.signal.aborted ? LEFT : statusOf(error, endpoint));
    throw error.withHeaders({ "x-sluice-cost": "0" });
  } finally {
    const words = endpoint === "messages" ? "anthropic" : "openai";
    for (const header of writeLimitHeaders(meter.standings(), { now: gateway.now, words })) answerHeaders.push(header);
  }
}

/** The status of a request whose client left before there was any of its answer, as nginx has it. */
export const LEFT = 499;

/** The status that a client gets with an error. */
export function statusOf(error: GatewayError, endpoint: MeteredEndpoint): number {
  return endpoint === "messages" ? anthropicStatus(error) : error.status;
}
