/** A slow reference limiter: it keeps a log of all reservations, and reads the whole log for every decision. */
import { assert } from "@std/assert";
import type { LimitDecision, LimitRequest, LimitStatus } from "../../lib/limits/limiter.ts";

const BUCKET_MS = 500;
const WINDOW_MS = 60_000;
const LATE_MS = 60_000;

/** One request's reservation of one limit, or a debt of it. */
interface Mark {
  id: string;
  limitRequest: LimitRequest;
  amount: number;
  at: number;
  /** Time from which it no longer counts. */
  end: number;
  /** Slots only: longest time of the request. */
  forMs: number;
}

/** The log. Times are whole milliseconds. */
export class Reference {
  readonly #marks: Mark[] = [];
  /** Until when the ids are known that took and have not ended. */
  readonly #open = new Map<string, number>();

  /** The required decision on a reservation. */
  expect({ limitRequests }: { limitRequests: readonly LimitRequest[] }, now: number): Omit<LimitDecision, "statuses"> {
    const waits = limitRequests.map((limitRequest) => ({ limitRequest, waitMs: this.#waitFor(limitRequest, now) }))
      .filter(({ waitMs }) => waitMs > 0);
    const refusing = waits.filter(({ limitRequest }) => !limitRequest.reportOnly);
    const longest = (list: typeof waits) =>
      list.toSorted((a, b) => a.waitMs < b.waitMs ? 1 : a.waitMs > b.waitMs ? -1 : 0);
    return {
      admitted: refusing.length === 0,
      exceeded: [...longest(refusing), ...longest(waits.filter(({ limitRequest }) => limitRequest.reportOnly))].map((
        { limitRequest },
      ) => limitRequest),
      retryAfterMs: Math.max(0, ...refusing.map(({ waitMs }) => waitMs)),
    };
  }

  take(
    { id, limitRequests, forMs }: { id: string; limitRequests: readonly LimitRequest[]; forMs: number },
    now: number,
  ): void {
    if (limitRequests.length > 0) this.#open.set(id, edgeFrom(now + forMs) + LATE_MS);
    for (const limitRequest of limitRequests) {
      const end = limitRequest.unit === "concurrency" ? edgeFrom(now + forMs) : edgeFrom(now + 1) + WINDOW_MS;
      this.#marks.push({ id, limitRequest, amount: limitRequest.cost, at: now, end, forMs });
    }
  }

  end(id: string, tokens: number, now: number): void {
    if (!this.#close(id, now)) return;
    for (const mark of this.#marks.filter((mark) => mark.id === id)) {
      if (mark.limitRequest.unit === "concurrency") mark.amount = 0;
      if (mark.limitRequest.unit !== "tokens") continue;
      const debt = tokens - mark.amount;
      if (debt <= 0 || mark.end > now) mark.amount = tokens;
      else this.#marks.push({ ...mark, amount: debt, at: now, end: edgeFrom(now + 1) + WINDOW_MS });
    }
  }

  undo(id: string, now: number): void {
    if (!this.#close(id, now)) return;
    for (const mark of this.#marks) if (mark.id === id) mark.amount = 0;
  }

  statuses(limitRequests: readonly LimitRequest[], now: number): LimitStatus[] {
    return limitRequests.map((limitRequest) => {
      const counting = this.#of(limitRequest).filter(({ end }) => end > now);
      return {
        limitRequest,
        remaining: Math.max(0, limitRequest.limit - this.#sum(limitRequest, now)),
        resetMs: Math.max(0, ...counting.map(({ end }) => end - now)),
      };
    });
  }

  /**
   * The guarantees themselves, without buckets. An admitted request is in the log already: the 60 seconds that end now
   * hold no more than the limit. After a rejection, 60.5 seconds would hold more.
   */
  checkPromise(
    limitRequests: readonly LimitRequest[],
    { admitted, exceeded, now }: Pick<LimitDecision, "admitted" | "exceeded"> & { now: number },
  ): void {
    assert(admitted || exceeded.some(({ reportOnly }) => !reportOnly), "refused by what only reports");
    for (const limitRequest of limitRequests) {
      const { limit, cost, reportOnly } = limitRequest;
      if (admitted && !reportOnly) {
        assert(
          this.#within(limitRequest, { slackMs: 0, now }) <= limit,
          `more than a limit: ${describe(limitRequest)}`,
        );
      }
      if (!admitted && exceeded.includes(limitRequest)) {
        assert(
          this.#within(limitRequest, { slackMs: BUCKET_MS, now }) + cost > limit,
          `refused without need: ${describe(limitRequest)}`,
        );
      }
    }
  }

  /** After everything has ended, everything is there again. */
  checkFree(statuses: readonly LimitStatus[]): void {
    for (const { limitRequest, remaining, resetMs } of statuses) {
      assert(remaining === limitRequest.limit && resetMs === 0, `never free again: ${describe(limitRequest)}`);
    }
  }

  /** True if the id was known. */
  #close(id: string, now: number): boolean {
    const until = this.#open.get(id) ?? 0;
    this.#open.delete(id);
    return until > now;
  }

  #within(limitRequest: LimitRequest, { slackMs, now }: { slackMs: number; now: number }): number {
    return this.#of(limitRequest).filter(({ at, forMs }) =>
      limitRequest.unit === "concurrency" ? now < at + forMs + slackMs : at >= now - WINDOW_MS - slackMs
    ).reduce((sum, { amount }) => sum + amount, 0);
  }

  #waitFor(limitRequest: LimitRequest, now: number): number {
    const fits = (at: number) => this.#sum(limitRequest, at) + limitRequest.cost <= limitRequest.limit;
    if (fits(now)) return 0;
    const ends = this.#of(limitRequest).map(({ end }) => end).filter((end) => end > now).sort((a, b) => a - b);
    const waitMs = (ends.find(fits) ?? Infinity) - now;
    return limitRequest.unit === "concurrency" ? Math.min(5000, Math.max(1000, waitMs)) : waitMs;
  }

  #sum(limitRequest: LimitRequest, now: number): number {
    return this.#of(limitRequest).filter(({ end }) => end > now).reduce((sum, { amount }) => sum + amount, 0);
  }

  #of({ name, unit }: LimitRequest): Mark[] {
    return this.#marks.filter((mark) =>
      mark.amount > 0 && mark.limitRequest.name === name && mark.limitRequest.unit === unit
    );
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
