/** Limits of a node that is alone: its share of each, and what it admits that the shared counts do not know. */
import type { Claim, Standing, Taking } from "./limiter.ts";
import type { Counted } from "./memory.ts";
import type { Used } from "./redis_counts.ts";
import { Window } from "./window.ts";

/**
 * The claims of a request against one node's share of the limits: at least 1 where the limit is no 0. A request that takes
 * more than a share, but not more than a limit, waits until nothing else counts.
 * @param nodes how many share the limits
 */
export function sharesOf(claims: readonly Claim[], nodes: number): Claim[] {
  return claims.map((claim) => {
    const { limit, cost: wanted } = claim;
    const share = Math.max(Math.min(limit, 1), Math.floor(limit / nodes));
    return { ...claim, limit: wanted > share && wanted <= limit ? wanted : share };
  });
}

/** The same claims, which refuse nothing: only to count them. */
export function onlyCounted(claims: readonly Claim[]): Claim[] {
  return claims.map((claim) => ({ ...claim, reportOnly: true }));
}

/** What came of a wish for shares, told of the limits themselves. */
export function ofLimits(
  { standings, over, ...taking }: Taking,
  { claims, shares }: { claims: readonly Claim[]; shares: readonly Claim[] },
): Taking {
  const limitOf = (share: Claim) => claims[shares.indexOf(share)] ?? share;
  return { ...taking, standings: standingsOfLimits(standings, claims), over: over.map(limitOf) };
}

/** How shares stand, told of the limits themselves. */
export function standingsOfLimits(standings: readonly Standing[], claims: readonly Claim[]): Standing[] {
  return standings.map((standing, index) => ({ ...standing, claim: claims[index] ?? standing.claim }));
}

/** What requests took that have ended and that the shared counts do not know. */
export class Owed {
  readonly #windows = new Map<string, { name: string; unit: Claim["unit"]; window: Window }>();

  /** @param end when it leaves its window */
  add(claims: readonly Claim[], { used, end }: { used: Used; end: number }): void {
    if (used === "undone") return;
    for (const { name, unit, cost } of claims) {
      if (unit === "concurrency") continue;
      const key = `${unit} ${name}`;
      const owed = this.#windows.get(key) ?? { name, unit, window: new Window() };
      this.#windows.set(key, owed);
      owed.window.add(unit === "tokens" && used !== "unknown" ? used : cost, end);
    }
  }

  /** All that still counts. Nothing is owed afterwards. */
  drain(now: number): Counted[] {
    const owed = [...this.#windows.values()].map(({ name, unit, window }) => ({
      name,
      unit,
      buckets: window.buckets(now),
    }));
    this.#windows.clear();
    return owed;
  }
}
