/**
 * Claims idempotent requests in the store. A node renews its claim while it works, so that no other node does the work.
 */
import { GatewayError } from "../errors.ts";
import type { StartTimer } from "../start_timer.ts";
import type { AnswerClaim, AnswerStore, OtherClaim } from "../store/answers.ts";

/** Dependencies of claims. */
export interface ClaimParts {
  answers: Pick<AnswerStore, "claim" | "release">;
  /** Resolves to true when the request has a stored answer. */
  isAnswered: () => Promise<boolean>;
  /** Time until the claim of a dead node expires, in milliseconds. */
  leaseMs: number;
  /** Monotonic clock in milliseconds. */
  monotonic: () => number;
  later: StartTimer;
}

/** A claim held by this node. */
export interface HeldClaim {
  readonly claim: AnswerClaim;
  /** Aborts when another node may have taken over the work. */
  readonly lost: AbortSignal;
  /** Releases the claim. Never rejects: if the store is unreachable, the lease runs out. */
  release(): Promise<void>;
  /** Stops renewing the claim, so that its lease expires. */
  stopRenewing(): void;
}

/** Renewals per lease. Two in a row may fail. */
const RENEWALS_PER_LEASE = 3;

/** `retry-after` for clients whose work was aborted, in milliseconds. */
const RETRY_MS = 1_000;

/**
 * Claims a request, or returns the claim of another node.
 * @param after the holder of an expired claim without an answer, whose claim may be taken over
 */
export async function claimRequest(
  claim: AnswerClaim,
  { answers, isAnswered, leaseMs, monotonic, later }: ClaimParts,
  after?: string,
): Promise<HeldClaim | OtherClaim> {
  let renewedAt = monotonic();
  const other = await answers.claim(claim, leaseMs, after);
  if (other !== undefined) return other;

  const lost = new AbortController();
  let hasStopped = false;
  let renewing = Promise.resolve();
  let cancel = schedule();

  function schedule(): () => void {
    return later(() => renewing = renew(), leaseMs / RENEWALS_PER_LEASE);
  }

  async function renew(): Promise<void> {
    const startedAt = monotonic();
    try {
      const isHeld = await answers.claim(claim, leaseMs) === undefined;
      // If the lease had expired, another node may already have answered.
      const hadExpired = monotonic() - renewedAt >= leaseMs;
      if (!isHeld || hadExpired && await isAnswered()) return lost.abort(lostClaimError());
      renewedAt = startedAt;
    } catch {
      // The next renewal tries again. While the store is unreachable, no other node can take the claim.
    }
    if (!hasStopped) cancel = schedule();
  }

  function stopRenewing(): void {
    hasStopped = true;
    cancel();
  }

  return {
    claim,
    lost: lost.signal,
    stopRenewing,
    async release() {
      stopRenewing();
      // A renewal that arrives after the release would block other nodes.
      await renewing;
      await answers.release(claim).catch(() => {});
    },
  };
}

function lostClaimError(): GatewayError {
  return new GatewayError(
    "overloaded",
    "Cannot continue the request: this node was disconnected from the store for too long",
    { retryAfterMs: RETRY_MS },
  );
}
