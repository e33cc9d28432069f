/** Admits image requests: reserves their limits and their budget. */
import { requireCaller } from "../access/permissions.ts";
import type { Model } from "../catalog/model.ts";
import type { RouteContext } from "../server/router.ts";
import { callerLimitRequests, limitRequestsOf } from "../limits/limit_requests.ts";
import { budgetClaims } from "../billing/budgets.ts";
import type { Meter } from "../billing/meter.ts";
import type { AdmissionTerms } from "../billing/reservation.ts";
import { costBound, costOfExtras, pricesAt } from "../billing/price.ts";
import type { BilledExtra } from "../store/ledger.ts";
import { longestMs } from "../request/targets.ts";

/** Reserves limits and budget for all images of a request at their requested size. @throws {GatewayError} `limited` */
export async function admitImages(
  { input, output, extras }: { input: number; output: number; extras: readonly BilledExtra[] },
  { meter, model, context }: { meter: Meter; model: Model; context: RouteContext },
): Promise<void> {
  const terms = termsOf({ meter, model, context });
  const tokens = { input, output };
  await meter.admit({
    ...terms,
    limitRequests: limitRequestsOf({ caller: requireCaller(context.caller), model, tokens }),
    maxCost: costBound(tokens, terms.sheet) + costOfExtras(extras, terms.sheet),
  });
}

/**
 * Admits the replay of an earlier answer. It counts as a request of its caller, because it costs the gateway work, but
 * uses no tokens, budget or model.
 * @throws {GatewayError} `limited`
 */
export async function admitReplay(
  { meter, model, context }: { meter: Meter; model: Model; context: RouteContext },
): Promise<void> {
  const limitRequests = callerLimitRequests(requireCaller(context.caller))
    .filter(({ unit }) => unit !== "tokens");
  await meter.admit({ ...termsOf({ meter, model, context }), limitRequests, maxCost: 0n });
}

/** Returns the terms that do not depend on the size of a request. Its prices are those at its arrival. */
function termsOf(
  { meter, model, context }: { meter: Meter; model: Model; context: RouteContext },
): Omit<AdmissionTerms, "limitRequests" | "maxCost"> {
  const caller = requireCaller(context.caller);
  return {
    model,
    ...pricesAt(model, { factor: caller.group.price_factor, now: meter.entry.arrivedAt }),
    budgets: budgetClaims(caller, meter.entry),
    forMs: longestMs([{ model }], context.gateway.config),
  };
}
