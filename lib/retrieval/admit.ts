/** Admits requests for embeddings and reranking: reserves limits and holds budgets. */
import { requireCaller } from "../access/permissions.ts";
import { budgetClaims } from "../billing/budgets.ts";
import type { Amount } from "../billing/money.ts";
import type { Meter } from "../billing/meter.ts";
import { isModelLimit, limitRequestsOf } from "../limits/limit_requests.ts";
import type { LimitRequest } from "../limits/limiter.ts";
import { admitAny } from "../request/admit_request.ts";
import { longestMs } from "../request/targets.ts";
import type { RouteContext } from "../server/router.ts";
import type { RetrievalCandidate } from "./candidates.ts";
import type { RetrievalRequest } from "./types.ts";

/** A candidate that may answer. */
export interface AdmittedCandidate<R extends RetrievalRequest> extends RetrievalCandidate<R> {
  /** Limits to reserve when this alternative answers; those of the first candidate are already reserved. */
  limitRequests: readonly LimitRequest[];
}

/**
 * Reserves limits and holds budgets for a request. The held amount covers the most expensive model that may answer.
 * Models that the budgets cannot pay for are left out.
 * @returns the admitted candidates, at least one, the preferred one first
 * @throws {GatewayError} `limited`
 */
export function admitRetrieval<R extends RetrievalRequest>(
  candidates: readonly RetrievalCandidate<R>[],
  { meter, context }: { meter: Meter; context: RouteContext },
): Promise<AdmittedCandidate<R>[]> {
  const { gateway } = context;
  const caller = requireCaller(context.caller);
  const budgets = budgetClaims(caller, meter.entry);
  const limitsOf = ({ model, size }: RetrievalCandidate<R>) =>
    limitRequestsOf({ caller, model, tokens: { input: size.expected, output: 0 } });
  return admitAny(candidates, async (first, others) => {
    let payable = others;
    await meter.admit({
      model: first.model,
      sheet: first.sheet,
      extraPrices: first.extraPrices,
      budgets,
      limitRequests: limitsOf(first),
      maxCost: highestCost([first, ...others]),
      costWithin(available) {
        payable = others.filter(({ maxCost }) => maxCost <= available);
        return highestCost([first, ...payable]);
      },
      forMs: longestMs([first, ...others], gateway.config),
      isWhole: true,
    });
    return [
      { ...first, limitRequests: [] },
      ...payable.map((other) => ({ ...other, limitRequests: limitsOf(other).filter(isModelLimit) })),
    ];
  });
}

function highestCost(candidates: readonly Pick<RetrievalCandidate<RetrievalRequest>, "maxCost">[]): Amount {
  return candidates.reduce((highest, { maxCost }) => maxCost > highest ? maxCost : highest, 0n);
}
