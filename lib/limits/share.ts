/** A node's share of the limits, to which it keeps while Redis is out of reach. */
import type { LimitDecision, LimitRequest, LimitStatus } from "./limiter.ts";

/**
 * Divides the limits of a request by the number of nodes, to at least 1 where the limit is not 0. A request that takes more
 * than a share but not more than the limit keeps its cost as its share: it is admitted when nothing else counts.
 */
export function divideLimits(claims: readonly LimitRequest[], nodes: number): LimitRequest[] {
  return claims.map((claim) => {
    const { limit, cost } = claim;
    const share = Math.max(Math.min(limit, 1), Math.floor(limit / nodes));
    return { ...claim, limit: cost > share && cost <= limit ? cost : share };
  });
}

/** Names the limits themselves in a decision about their shares. */
export function nameLimits(
  { standings, over, ...taking }: LimitDecision,
  { claims, shares }: { claims: readonly LimitRequest[]; shares: readonly LimitRequest[] },
): LimitDecision {
  const limitOf = (share: LimitRequest) => claims[shares.indexOf(share)] ?? share;
  return { ...taking, standings: nameLimitsInStatuses(standings, claims), over: over.map(limitOf) };
}

/** Names the limits themselves in the status of their shares. */
export function nameLimitsInStatuses(
  standings: readonly LimitStatus[],
  claims: readonly LimitRequest[],
): LimitStatus[] {
  return standings.map((standing, index) => ({ ...standing, claim: claims[index] ?? standing.claim }));
}
