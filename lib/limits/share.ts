/** A node's share of the limits, to which it keeps while Redis is out of reach. */
import type { LimitDecision, LimitRequest, LimitStatus } from "./limiter.ts";

/**
 * Divides the limits of a request by the number of nodes, to at least 1 where the limit is not 0. A request that takes more
 * than a share but not more than the limit keeps its cost as its share: it is admitted when nothing else counts.
 */
export function divideLimits(limitRequests: readonly LimitRequest[], nodes: number): LimitRequest[] {
  return limitRequests.map((limitRequest) => {
    const { limit, cost } = limitRequest;
    const share = Math.max(Math.min(limit, 1), Math.floor(limit / nodes));
    return { ...limitRequest, limit: cost > share && cost <= limit ? cost : share };
  });
}

/** Names the limits themselves in a decision about their shares. */
export function nameLimits(
  { statuses, over, ...taking }: LimitDecision,
  { limitRequests, shares }: { limitRequests: readonly LimitRequest[]; shares: readonly LimitRequest[] },
): LimitDecision {
  const limitOf = (share: LimitRequest) => limitRequests[shares.indexOf(share)] ?? share;
  return { ...taking, statuses: nameLimitsInStatuses(statuses, limitRequests), over: over.map(limitOf) };
}

/** Names the limits themselves in the status of their shares. */
export function nameLimitsInStatuses(
  statuses: readonly LimitStatus[],
  limitRequests: readonly LimitRequest[],
): LimitStatus[] {
  return statuses.map((status, index) => ({ ...status, limitRequest: limitRequests[index] ?? status.limitRequest }));
}
