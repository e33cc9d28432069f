/** What a limiter does, told slowly: a log of all that was taken, read anew for every question. */
import { assert } from "@std/assert";
import type { LimitDecision, LimitRequest, LimitStatus } from "../../lib/limits/limiter.ts";

const BUCKET_MS = 500;
const WINDOW_MS = 60_000;
const LATE_MS = 60_000;

/** One claim of one request, or a debt of it. */
interface Mark {
  id: string;
  claim: LimitRequest;
  amount: number;
  at: number;
  /** From then on it does not count. */
  end: number;
  /** Slots only: longest time of the request. */
  forMs: number;
}

/** The log. Times are whole milliseconds. */
export class Reference {
  readonly #marks: Mark[] = [];
  /** Until when the ids are known that took and have not ended. */
  readonly #open = new Map<string, number>();

  /** What a take must answer. */
  expect({ claims }: { claims: readonly LimitRequest[] }, now: number): Omit<LimitDecision, "standings"> {
    const waits = claims.map((claim) => ({ claim, waitMs: this.#waitFor(claim, now) })).filter(({ waitMs }) =>
      waitMs > 0
    );
    const refusing = waits.filter(({ claim }) => !claim.reportOnly);
    const longest = (list: typeof waits) =>
      list.toSorted((a, b) => a.waitMs < b.waitMs ? 1 : a.waitMs > b.waitMs ? -1 : 0);
    return {
      admitted: refusing.length === 0,
      over: [...longest(refusing), ...longest(waits.filter(({ claim }) => claim.reportOnly))].map(({ claim }) => claim),
      retryAfterMs: Math.max(0, ...refusing.map(({ waitMs }) => waitMs)),
    };
  }

  take({ id, claims, forMs }: { id: string; claims: readonly LimitRequest[]; forMs: number }, now: number): void {
    if (claims.length > 0) this.#open.set(id, edgeFrom(now + forMs) + LATE_MS);
    for (const claim of claims) {
      const end = claim.unit === "concurrency" ? edgeFrom(now + forMs) : edgeFrom(now + 1) + WINDOW_MS;
      this.#marks.push({ id, claim, amount: claim.cost, at: now, end, forMs });
    }
  }

  end(id: string, tokens: number, now: number): void {
    if (!this.#close(id, now)) return;
    for (const mark of this.#marks.filter((mark) => mark.id === id)) {
      if (mark.claim.unit === "concurrency") mark.amount = 0;
      if (mark.claim.unit !== "tokens") continue;
      const debt = tokens - mark.amount;
      if (debt <= 0 || mark.end > now) mark.amount = tokens;
      else this.#marks.push({ ...mark, amount: debt, at: now, end: edgeFrom(now + 1) + WINDOW_MS });
    }
  }

  undo(id: string, now: number): void {
    if (!this.#close(id, now)) return;
    for (const mark of this.#marks) if (mark.id === id) mark.amount = 0;
  }

  standings(claims: readonly LimitRequest[], now: number): LimitStatus[] {
    return claims.map((claim) => {
      const counting = this.#of(claim).filter(({ end }) => end > now);
      return {
        claim,
        remaining: Math.max(0, claim.limit - this.#sum(claim, now)),
        resetMs: Math.max(0, ...counting.map(({ end }) => end - now)),
      };
    });
  }

  /**
   * The promises themselves, without buckets. What was just admitted is in the log already: no 60 seconds that end now
   * hold more than a limit. Or something was refused: 60.5 seconds would have.
   */
  checkPromise(
    claims: readonly LimitRequest[],
    { admitted, over, now }: Pick<LimitDecision, "admitted" | "over"> & { now: number },
  ): void {
    assert(admitted || over.some(({ reportOnly }) => !reportOnly), "refused by what only reports");
    for (const claim of claims) {
      const { limit, cost, reportOnly } = claim;
      if (admitted && !reportOnly) {
        assert(this.#within(claim, { slackMs: 0, now }) <= limit, `more than a limit: ${describe(claim)}`);
      }
      if (!admitted && over.includes(claim)) {
        assert(
          this.#within(claim, { slackMs: BUCKET_MS, now }) + cost > limit,
          `refused without need: ${describe(claim)}`,
        );
      }
    }
  }

  /** After everything has ended, everything is there again. */
  checkFree(standings: readonly LimitStatus[]): void {
    for (const { claim, remaining, resetMs } of standings) {
      assert(remaining === claim.limit && resetMs === 0, `never free again: ${describe(claim)}`);
    }
  }

  /** Whether the id was known. */
  #close(id: string, now: number): boolean {
    const until = this.#open.get(id) ?? 0;
    this.#open.delete(id);
    return until > now;
  }

  #within(claim: LimitRequest, { slackMs, now }: { slackMs: number; now: number }): number {
    return this.#of(claim).filter(({ at, forMs }) =>
      claim.unit === "concurrency" ? now < at + forMs + slackMs : at >= now - WINDOW_MS - slackMs
    ).reduce((sum, { amount }) => sum + amount, 0);
  }

  #waitFor(claim: LimitRequest, now: number): number {
    const fits = (at: number) => this.#sum(claim, at) + claim.cost <= claim.limit;
    if (fits(now)) return 0;
    const ends = this.#of(claim).map(({ end }) => end).filter((end) => end > now).sort((a, b) => a - b);
    const waitMs = (ends.find(fits) ?? Infinity) - now;
    return claim.unit === "concurrency" ? Math.min(5000, Math.max(1000, waitMs)) : waitMs;
  }

  #sum(claim: LimitRequest, now: number): number {
    return this.#of(claim).filter(({ end }) => end > now).reduce((sum, { amount }) => sum + amount, 0);
  }

  #of({ name, unit }: LimitRequest): Mark[] {
    return this.#marks.filter((mark) => mark.amount > 0 && mark.claim.name === name && mark.claim.unit === unit);
  }
}

/** The first edge of a bucket that is not before. */
function edgeFrom(at: number): number {
  let edge = Math.trunc(at / BUCKET_MS) * BUCKET_MS;
  while (edge < at) edge += BUCKET_MS;
  return edge;
}

function describe({ name, unit }: LimitRequest): string {
  return `${unit} of ${name}`;
}
