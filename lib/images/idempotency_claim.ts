/** Claims on idempotent requests. A node renews its claim while it works, so that no other node does the same work. */
import { GatewayError } from "../errors.ts";
import type { Later } from "../billing/entry_queue.ts";
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
  later: Later;
}

/** A claim held by this node. */
export interface HeldClaim {
  /** Aborts when another node may have taken over the work. */
  readonly lost: AbortSignal;
  /** Releases the claim. Never rejects: if the store is unreachable, the lease runs out. */
  release(): Promise<void>;
  /** Stops renewing the claim, so that its lease runs out. */
  stopRenewing(): void;
}

/** Renewals per lease: two in a row may fail. */
const RENEWALS = 3;

/** `retry-after` for clients whose work was given up, in milliseconds. */
const RETRY_MS = 1_000;

/**
 * Claims a request, or returns the claim of its holder.
 * @param after the holder of an expired claim without an answer
 */
export async function claimRequest(
  claim: AnswerClaim,
  { answers, isAnswered, leaseMs, monotonic, later }: ClaimParts,
  after?: string,
): Promise<HeldClaim | OtherClaim> {
  let keptAt = monotonic();
  const other = await answers.claim(claim, leaseMs, after);
  if (other !== undefined) return other;

  const lost = new AbortController();
  let isOver = false;
  let renewing = Promise.resolve();
  let cancel = schedule();

  function schedule(): () => void {
    return later(() => renewing = renew(), leaseMs / RENEWALS);
  }

  async function renew(): Promise<void> {
    const at = monotonic();
    try {
      const isMine = await answers.claim(claim, leaseMs) === undefined;
      // After a lapsed lease, another node may already have answered.
      const wasAway = monotonic() - keptAt >= leaseMs;
      if (!isMine || wasAway && await isAnswered()) return lost.abort(givenUp());
      keptAt = at;
    } catch {
      // The next renewal tries again. An unreachable store gives the claim to no other node either.
    }
    if (!isOver) cancel = schedule();
  }

  function stopRenewing(): void {
    isOver = true;
    cancel();
  }

  return {
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

function givenUp(): GatewayError {
  return new GatewayError(
    "overloaded",
    "Cannot continue the request: this node was disconnected from the store for too long",
    { retryAfterMs: RETRY_MS },
  );
}
