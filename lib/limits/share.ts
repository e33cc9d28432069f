/** Computes a node's share of the limits while Redis is unreachable. */
import type { LimitDecision, LimitRequest, LimitStatus } from "./limiter.ts";

/**
 * Divides the limits of a request by the number of nodes. A share is at least 1 unless the limit is 0. If a request
 * costs more than a share but at most the limit, the share is its cost: it is admitted when nothing else counts.
 */
export function divideLimits(limitRequests: readonly LimitRequest[], nodes: number): LimitRequest[] {
  return limitRequests.map((limitRequest) => {
    const { limit, cost } = limitRequest;
    const share = Math.max(Math.min(limit, 1), Math.floor(limit / nodes));
    return { ...limitRequest, limit: cost > share && cost <= limit ? cost : share };
  });
}

/** Replaces the shares in a decision with the full limits, which clients know. */
export function nameLimits(
  { statuses, exceeded, ...outcome }: LimitDecision,
  { limitRequests, shares }: { limitRequests: readonly LimitRequest[]; shares: readonly LimitRequest[] },
): LimitDecision {
  const limitOf = (share: LimitRequest) => limitRequests[shares.indexOf(share)] ?? share;
  return { ...outcome, statuses: nameLimitsInStatuses(statuses, limitRequests), exceeded: exceeded.map(limitOf) };
}

/** Replaces the shares in statuses with the full limits. */
export function nameLimitsInStatuses(
  statuses: readonly LimitStatus[],
  limitRequests: readonly LimitRequest[],
): LimitStatus[] {
  return statuses.map((status, index) => ({ ...status, limitRequest: limitRequests[index] ?? status.limitRequest }));
}
