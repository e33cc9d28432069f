/** Admits requests for embeddings and reranking: reserves limits and holds budgets. */
import { requireCaller } from "../access/permissions.ts";
import { budgetClaims } from "../billing/budgets.ts";
import type { Amount } from "../billing/money.ts";
import type { Meter } from "../billing/meter.ts";
import { GatewayError } from "../errors.ts";
import { limitOwnerOf, limitRequestsOf } from "../limits/limit_requests.ts";
import type { LimitRequest } from "../limits/limiter.ts";
import { longestMs } from "../request/targets.ts";
import type { RouteContext } from "../server/router.ts";
import type { RetrievalCandidate } from "./candidates.ts";
import type { RetrievalRequest } from "./types.ts";

/** A candidate that may answer. */
export interface AdmittedCandidate<R extends RetrievalRequest> extends RetrievalCandidate<R> {
  /** Limits to reserve when this alternative answers; those of the first candidate are reserved already. */
  limitRequests: readonly LimitRequest[];
}

/**
 * Reserves limits and holds budgets for a request. The held amount covers the most expensive model that may answer;
 * models beyond the budget are left out.
 * @returns the admitted candidates, at least one, the preferred one first
 * @throws {GatewayError} `limited`
 */
export async function admitRetrieval<R extends RetrievalRequest>(
  candidates: readonly RetrievalCandidate<R>[],
  { meter, context }: { meter: Meter; context: RouteContext },
): Promise<AdmittedCandidate<R>[]> {
  const { gateway } = context;
  const caller = requireCaller(context.caller);
  const limitsOf = ({ model, size }: RetrievalCandidate<R>) =>
    limitRequestsOf({ caller, model, tokens: { input: size.expected, output: 0 } });
  const budgets = budgetClaims(caller, { user: meter.user, now: gateway.now() });
  let refusal: unknown;
  for (let [first, ...others] = candidates; first !== undefined; [first, ...others] = others) {
    const able: readonly RetrievalCandidate<R>[] = [first, ...others];
    let payable = others;
    try {
      await meter.admit({
        model: first.model,
        sheet: first.sheet,
        extraPrices: first.extraPrices,
        budgets,
        limitRequests: limitsOf(first),
        most: dearest(able),
        within(left) {
          payable = able.slice(1).filter(({ most }) => most <= left);
          return dearest([...able.slice(0, 1), ...payable]);
        },
        forMs: longestMs(able, gateway.config),
        whole: true,
      });
    } catch (error) {
      if (!(error instanceof GatewayError) || error.kind !== "limited") throw error;
      refusal ??= error;
      continue;
    }
    const isOfModel = (limit: LimitRequest) => limitOwnerOf(limit).type === "model";
    return [
      { ...first, limitRequests: [] },
      ...payable.map((other) => ({ ...other, limitRequests: limitsOf(other).filter(isOfModel) })),
    ];
  }
  throw refusal;
}

function dearest(candidates: readonly Pick<RetrievalCandidate<RetrievalRequest>, "most">[]): Amount {
  return candidates.reduce((dearest, { most }) => most > dearest ? most : dearest, 0n);
}
