/** Claims of requests whose work is done here: kept as long as the work runs, so that no other node does the same. */
import { GatewayError } from "../errors.ts";
import type { Later } from "../billing/entry_queue.ts";
import type { AnswerClaim, AnswerStore, OtherClaim } from "../store/answers.ts";

/** What claims are made of. */
export interface ClaimParts {
  answers: Pick<AnswerStore, "claim" | "release">;
  /** Whether the request was answered by now. */
  isAnswered: () => Promise<boolean>;
  /** How long a claim outlives its node, in milliseconds. */
  leaseMs: number;
  /** Milliseconds that only grow. */
  monotonic: () => number;
  later: Later;
}

/** A claim that is held. */
export interface HeldClaim {
  /** Aborts where another node may do the work by now. */
  readonly lost: AbortSignal;
  /** Lets it go. Never rejects: where the store does not answer, it ends with its lease. */
  release(): Promise<void>;
  /** Renews it no more. It ends with its lease. */
  leave(): void;
}

/** Renewals within the time that a claim lives without one: two may fail. */
const RENEWALS = 3;

/** When another try makes sense for a client whose work was given up, in milliseconds. */
const RETRY_MS = 1_000;

/** Claims a request, or gives the claim of who has it. @param after a holder whose time is over, who came to nothing */
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
      // Another node may have come and gone since the lease was over: then its answer is there.
      const wasAway = monotonic() - keptAt >= leaseMs;
      if (!isMine || wasAway && await isAnswered()) return lost.abort(givenUp());
      keptAt = at;
    } catch {
      // Tried again: while the store is out of reach nobody else can claim it either.
    }
    if (!isOver) cancel = schedule();
  }

  function leave(): void {
    isOver = true;
    cancel();
  }

  return {
    lost: lost.signal,
    leave,
    async release() {
      leave();
      // A renewal that came after the end would keep others waiting.
      await renewing;
      await answers.release(claim).catch(() => {});
    },
  };
}

function givenUp(): GatewayError {
  return new GatewayError("overloaded", "Cannot go on with the request: this node was out of touch for too long", {
    retryAfterMs: RETRY_MS,
  });
}
