/** Runs a request that is answered as a whole under a meter. */
import type { RouteContext } from "../server/router.ts";
import type { Meter } from "../billing/meter.ts";
import { attributeRequest } from "./attribution.ts";
import { addLimitHeaders, openRequestMeter, settleFailure } from "./request_meter.ts";
import type { MeteredEndpoint } from "../store/ledger.ts";

/** A request under a meter. */
export interface MeteredWork {
  meter: Meter;
  /** Aborts when the process ends; its reason is the client's error. */
  interrupted: AbortSignal;
  /** From here on, others end the meter, also where the request fails for this client. */
  handOver(): void;
}

/** Runs `work`, which ends the meter itself when it returns. A failure ends the meter without a charge. */
export async function runMetered(
  request: Request,
  { context, endpoint }: { context: RouteContext; endpoint: MeteredEndpoint },
  work: (metered: MeteredWork) => Promise<Response>,
): Promise<Response> {
  const metered = { request, context, endpoint };
  const interruption = new AbortController();
  const meter = openRequestMeter(metered, (reason) => interruption.abort(reason));
  let isOwn = true;
  try {
    attributeRequest(meter, request.headers);
    return await work({ meter, interrupted: interruption.signal, handOver: () => void (isOwn = false) });
  } catch (thrown) {
    throw await settleFailure(thrown, { ...metered, ...(isOwn && { meter }) });
  } finally {
    addLimitHeaders(metered, { meter });
  }
}
