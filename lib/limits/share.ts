/** A node's share of the limits while Redis is unreachable. */
import type { LimitDecision, LimitRequest, LimitStatus } from "./limiter.ts";

/**
 * Divides the limits of a request by the number of nodes, to at least 1 unless the limit is 0. A request that costs
 * more than a share but at most the limit gets its cost as share: it is admitted when nothing else counts.
 */
export function divideLimits(limitRequests: readonly LimitRequest[], nodes: number): LimitRequest[] {
  return limitRequests.map((limitRequest) => {
    const { limit, cost } = limitRequest;
    const share = Math.max(Math.min(limit, 1), Math.floor(limit / nodes));
    return { ...limitRequest, limit: cost > share && cost <= limit ? cost : share };
  });
}

/** Replaces shares by the full limits in a decision. */
export function nameLimits(
  { statuses, exceeded, ...taking }: LimitDecision,
  { limitRequests, shares }: { limitRequests: readonly LimitRequest[]; shares: readonly LimitRequest[] },
): LimitDecision {
  const limitOf = (share: LimitRequest) => limitRequests[shares.indexOf(share)] ?? share;
  return { ...taking, statuses: nameLimitsInStatuses(statuses, limitRequests), exceeded: exceeded.map(limitOf) };
}

/** Replaces shares by the full limits in statuses. */
export function nameLimitsInStatuses(
  statuses: readonly LimitStatus[],
  limitRequests: readonly LimitRequest[],
): LimitStatus[] {
  return statuses.map((status, index) => ({ ...status, limitRequest: limitRequests[index] ?? status.limitRequest }));
}
