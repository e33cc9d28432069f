/**
 * Compares refusals by limits with the running requests: nothing above a limit, no refusal of a request that fits, no
 * leaked slot. Counts are per process, because limits in memory restart with it.
 */
import type { Limiter, LimitRequest } from "../../../lib/limits/limiter.ts";
import { must, Violation } from "./checker.ts";
import type { Truth } from "./truth.ts";

/**
 * Requests and tokens count for a minute, slots for the longest duration of a request. A limiter may round these times
 * by this much.
 */
const MINUTE_MS = 60_000;
const ROUNDING_MS = 1_000;

const CODES = new Set(["rate_limit_requests", "rate_limit_tokens", "concurrency_limit"]);

/** Refusals after which all reservations were released. */
const UNDONE = new Set([...CODES, "insufficient_quota", "overloaded"]);

/** Checks the limits of one process. */
export class LimitsChecker {
  readonly #monotonic: () => number;
  /** True if answers are late, and may be lost. */
  readonly #isFar: boolean;
  /** Requests that asked for a reservation in a limit. */
  readonly #requests = new Set<Truth>();
  /** Requests whose answer is known. */
  readonly #answered = new Set<Truth>();

  constructor(monotonic: () => number, isFar: boolean) {
    this.#monotonic = monotonic;
    this.#isFar = isFar;
  }

  /** To be called after each step with each request that runs. */
  look(truth: Truth): void {
    const { takenAt, refusal, admitted } = truth;
    if (takenAt === undefined || this.#answered.has(truth)) return;
    this.#requests.delete(truth);
    if (admitted) {
      for (const claim of truth.claims) this.#mustFit(truth, claim);
    } else if (!this.#isFar && CODES.has(refusal?.code ?? "")) this.#mustBeFull(truth);
    this.#requests.add(truth);
    if (admitted || refusal !== undefined) this.#answered.add(truth);
  }

  /** Nothing runs: every slot is free. */
  async checkFree(limiter: Limiter): Promise<void> {
    for (const { claims } of this.#requests) {
      for (const { limitRequest: claim, remaining } of await limiter.statuses(claims)) {
        if (claim.unit !== "concurrency") continue;
        must(remaining === claim.limit, "I17", () => `${claim.limit - remaining} slots of ${claim.name} stay taken`);
      }
    }
  }

  #mustFit({ id, takenAt = 0 }: Truth, claim: LimitRequest): void {
    const isRecent = this.#monotonic() < takenAt + MINUTE_MS - ROUNDING_MS;
    if (claim.reportOnly || !isRecent) return;
    const before = this.#sum(claim, minOf, -ROUNDING_MS);
    const { name, unit, limit, cost } = claim;
    must(
      before + cost <= limit,
      "limits",
      () => `${id} was admitted to ${unit} of ${name} beside ${before} of ${limit}`,
    );
  }

  #mustBeFull({ id, claims }: Truth): void {
    const isFull = (claim: LimitRequest) =>
      !claim.reportOnly && this.#sum(claim, boundOf, ROUNDING_MS) + claim.cost > claim.limit;
    if (!claims.some(isFull)) throw new Violation("limits", `${id} was refused though there is room`);
  }

  #sum(claim: LimitRequest, amountOf: (truth: Truth, claim: LimitRequest) => number, slackMs: number): number {
    const now = this.#monotonic();
    let sum = 0;
    for (const truth of this.#requests) {
      const { takenAt = 0, forMs, claims } = truth;
      const own = claims.find(({ name, unit }) => name === claim.name && unit === claim.unit);
      if (own === undefined) continue;
      const lastsMs = claim.unit === "concurrency" ? forMs : MINUTE_MS;
      if (now < takenAt + lastsMs + slackMs) sum += amountOf(truth, own);
    }
    return sum;
  }
}

/** The least that a request counts. */
function minOf({ admitted, meter, over, usage }: Truth, { unit, cost }: LimitRequest): number {
  if (!admitted) return 0;
  if (unit === "requests") return cost;
  if (!meter.ended) return cost;
  if (unit === "concurrency" || !over || usage === undefined) return 0;
  return Math.min(cost, usage.completion);
}

/** The most that it may count. */
function boundOf({ refusal, over, usage, prompt, sent }: Truth, { unit, cost }: LimitRequest): number {
  if (refusal !== undefined && UNDONE.has(refusal.code ?? refusal.kind)) return 0;
  if (unit === "requests") return cost;
  if (unit === "concurrency") return over ? 0 : cost;
  const reported = usage === undefined ? 0 : Object.values(usage).reduce((sum, count) => sum + count, 0);
  return Math.max(cost, reported, prompt + sent);
}
