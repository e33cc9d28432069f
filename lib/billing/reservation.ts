/** Reserves the limits and the budget hold of one request, and releases them at its end. */
import type { Model } from "../catalog/model.ts";
import { describeFailure } from "../causes.ts";
import { limitOwnerOf } from "../limits/limit_requests.ts";
import { createLimitError } from "../limits/errors.ts";
import type {
  AdmissionRequest,
  AdmittedRequest,
  LimitDecision,
  Limiter,
  LimitRequest,
  LimitStatus,
} from "../limits/limiter.ts";
import type { Log } from "../log_events.ts";
import type { BudgetClaim, PriceSheet } from "../store/ledger.ts";
import { budgetError } from "./budgets.ts";
import type { Ledger } from "./ledger.ts";
import type { Amount } from "./money.ts";
import type { ExtraPrices } from "./price.ts";

/** The model, prices, limits and budgets that a request is admitted with. */
export interface AdmissionTerms {
  model: Model;
  /** Prices of the model, fixed at admission. */
  sheet: PriceSheet;
  /** Extra prices; absent: none. */
  extraPrices?: ExtraPrices | undefined;
  /** The requested service tier; absent: the default one. */
  tier?: string | undefined;
  /** The client's parameter that asks for the tier; absent: there is none. */
  tierParameter?: string | undefined;
  limitRequests: readonly LimitRequest[];
  /** Budgets that the request counts against. */
  budgets: readonly BudgetClaim[];
  /** The most that the request can cost. */
  maxCost: Amount;
  /**
   * Returns the most that the request can cost if its answer is shortened so that `available` suffices. The result exceeds
   * `available` if that is impossible. Absent: the request needs the whole amount.
   */
  costWithin?: (available: Amount) => Amount;
  /** The longest time that the request can last, in milliseconds. */
  forMs: number;
  /** True: the answer is not streamed, so its headers need the limit statuses only at its end. */
  isWhole?: boolean;
}

/** The terms that differ between the models of one request. */
export type ModelTerms = Pick<AdmissionTerms, "model" | "sheet" | "extraPrices" | "limitRequests">;

/**
 * Maximum number of attempts to hold a smaller amount: one for each of two budgets, and one because of concurrent
 * requests.
 */
const MAX_REDUCTIONS = 3;

/** Counts limit decisions. */
export interface LimitCounts {
  /** Called when a limit or budget refuses a request, with its owner (`key`, `group`, `model`) and unit (`usd`). */
  refused(owner: string, unit: string): void;
  /** Called when a report-only limit would have refused a request. */
  exceeded(): void;
}

/** Dependencies of reservations. */
export interface ReservationParts {
  limiter: Limiter;
  ledger: Pick<Ledger, "hold">;
  /** Monotonic time in milliseconds. */
  monotonic: () => number;
  log: Log;
  observer?: { readonly counts: LimitCounts };
}

/** Options of `end`. */
interface EndOptions {
  now?: number;
  isEntered?: boolean;
}

/** The reservations of one request: its limits, each under an id of its own, and the hold on its budgets. */
export class Reservation {
  readonly #parts: ReservationParts;
  readonly #request: Omit<AdmittedRequest, "model">;
  #held: Amount = 0n;
  /** Number of models besides the first whose own limits were requested. */
  #otherModels = 0;
  /** Ids under which limits are reserved, or may be if a reply was lost. */
  #reservedIds: string[] = [];
  /** Ids that were released before the ledger entry of the request was durable. */
  readonly #unentered: string[] = [];
  /** The last limit statuses of each id, with the monotonic time at which they were received. */
  readonly #received: { id: string; statuses: readonly LimitStatus[]; at: number }[] = [];

  constructor(parts: ReservationParts, { id, at, keyId, group, endpoint }: Omit<AdmittedRequest, "model">) {
    this.#parts = parts;
    this.#request = { id, at, keyId, group, endpoint };
  }

  /** The held amount; 0 if no budget applies. */
  get held(): Amount {
    return this.#held;
  }

  /**
   * Reserves limits, then holds budgets. If one of them refuses, nothing stays reserved.
   * @returns undefined if this finished synchronously
   * @throws {GatewayError} `limited`
   */
  take(terms: AdmissionTerms): Promise<void> | undefined {
    const { limitRequests, forMs, isWhole = false, model } = terms;
    // An earlier admission that was refused may have left statuses.
    this.#received.length = 0;
    const needsHold = terms.maxCost > 0n && terms.budgets.length > 0;
    // If a budget refuses, the limits are released, and their statuses are computed from those of the admission.
    const skipStatuses = isWhole && !needsHold;
    // If this process crashes, a request with a hold is entered as lost when its hold expires; other nodes need not
    // know it.
    const running = needsHold ? undefined : model;
    const reservingLimits = this.#takeLimits(limitRequests, { id: this.#request.id, forMs, skipStatuses, running });
    return reservingLimits === undefined && !needsHold
      ? undefined
      : this.#takeAll(reservingLimits, needsHold ? terms : undefined);
  }

  /** Reserves the limits of another model, which may answer instead. Returns and throws as `take` does. */
  takeMore(
    limitRequests: readonly LimitRequest[],
    { model, terms }: { model: Model; terms: AdmissionTerms },
  ): Promise<void> | undefined {
    const id = `${this.#request.id}/${++this.#otherModels}`;
    // Other nodes need to know a request once: an earlier reservation or hold has its facts already.
    const running = terms.limitRequests.length > 0 || this.#held > 0n ? undefined : model;
    return this.#takeLimits(limitRequests, { id, forMs: terms.forMs, skipStatuses: true, running });
  }

  /**
   * Reserves limits under an id of their own.
   * @param options `running`: the model under which other nodes know the request; undefined: they do not know it
   */
  #takeLimits(
    limitRequests: readonly LimitRequest[],
    { id, running, ...options }:
      & Pick<AdmissionRequest, "id" | "forMs" | "skipStatuses">
      & { running: Model | undefined },
  ): Promise<void> | undefined {
    if (limitRequests.length === 0) return undefined;
    // Stored before the call, so that the reservation is released even if its reply is lost.
    this.#reservedIds.push(id);
    const decision = this.#parts.limiter.take({
      id,
      limitRequests,
      ...options,
      running: running && { ...this.#request, model: running.id },
    });
    if (decision instanceof Promise) return decision.then((decision) => this.#applyDecision(id, decision));
    this.#applyDecision(id, decision);
    return undefined;
  }

  async #takeAll(limits: Promise<void> | undefined, held: AdmissionTerms | undefined): Promise<void> {
    try {
      if (limits !== undefined) await limits;
      if (held !== undefined) await this.#hold(held);
    } catch (refusal) {
      await this.#undo();
      throw refusal;
    }
  }

  /** Holds the whole amount if the budgets allow it, otherwise the smaller amount that `costWithin` returns. */
  async #hold({ model, budgets, maxCost, costWithin, forMs }: AdmissionTerms): Promise<void> {
    let amount = maxCost;
    for (let reductions = 0;; reductions++) {
      const hold = { ...this.#request, model: model.id, amount, claims: budgets };
      const answer = await this.#parts.ledger.hold(hold, forMs);
      if (answer.held) break;
      const smaller = reductions < MAX_REDUCTIONS ? costWithin?.(answer.available) : undefined;
      if (smaller === undefined || smaller > answer.available) {
        this.#parts.observer?.counts.refused(answer.claim.scope, "usd");
        throw budgetError(answer, { maxCost: smaller ?? amount });
      }
      amount = smaller;
    }
    this.#held = amount;
  }

  #applyDecision(id: string, decision: LimitDecision): void {
    const { log, observer } = this.#parts;
    // The refusal of an alternative model does not concern the model that answers.
    if (decision.admitted || id === this.#request.id) this.#storeStatuses(id, decision.statuses);
    if (!decision.admitted) {
      this.#reservedIds.pop();
      const refusing = decision.exceeded.find(({ reportOnly }) => !reportOnly);
      if (refusing !== undefined) observer?.counts.refused(limitOwnerOf(refusing).type, refusing.unit);
      throw createLimitError(decision);
    }
    if (decision.exceeded.length > 0) observer?.counts.exceeded();
    for (const { name, unit, limit } of decision.exceeded) {
      log({
        level: "warn",
        event: "limit_exceeded",
        request_id: this.#request.id,
        name,
        unit,
        limit,
        report_only: true,
      });
    }
  }

  /** Releases everything as if the request had never been made. Never rejects. */
  async #undo(): Promise<void> {
    for (const id of this.#reservedIds.splice(0)) {
      try {
        await this.#parts.limiter.undo(id);
        this.#storeStatuses(
          id,
          (this.#received.find((received) => received.id === id)?.statuses ?? []).map(withoutCost),
        );
      } catch (cause) {
        this.#logNotReleased(cause);
      }
    }
  }

  /**
   * Releases the concurrency slots, and replaces the estimated tokens with the actual number. Never rejects.
   * @param options `now`: the current time, if known; `isEntered` false: other nodes know the request until
   * `confirmEntry`
   * @returns undefined if this finished synchronously
   */
  end(tokens: number, options: EndOptions = {}): Promise<unknown> | undefined {
    const ids = this.#reservedIds;
    const [first] = ids;
    if (first === undefined) return undefined;
    this.#reservedIds = [];
    return ids.length === 1
      ? this.#endReservation(first, tokens, options)
      : Promise.all(ids.map((id) => this.#endReservation(id, tokens, options)));
  }

  /** Lets other nodes forget the request, because its entry is durable or never will be. */
  confirmEntry(): void {
    for (const id of this.#unentered.splice(0)) this.#parts.limiter.forget?.(id);
  }

  #endReservation(id: string, tokens: number, { now, isEntered = true }: EndOptions): Promise<void> | undefined {
    if (!isEntered) this.#unentered.push(id);
    try {
      const ending = this.#parts.limiter.end(id, tokens, { isEntered });
      if (ending instanceof Promise) {
        return ending.then((statuses) => this.#storeStatuses(id, statuses), (cause) => this.#logNotReleased(cause));
      }
      this.#storeStatuses(id, ending, now);
    } catch (cause) {
      this.#logNotReleased(cause);
    }
    return undefined;
  }

  /** Returns the limit statuses as last received, with reset times for now. Does not call the limiter. */
  limitStatuses(): LimitStatus[] {
    const now = this.#parts.monotonic();
    const all: LimitStatus[] = [];
    for (const { statuses, at } of this.#received) {
      for (const { limitRequest, remaining, resetMs } of statuses) {
        all.push({ limitRequest, remaining, resetMs: Math.max(0, resetMs - (now - at)) });
      }
    }
    return all;
  }

  #storeStatuses(id: string, statuses: readonly LimitStatus[], now?: number): void {
    if (statuses.length === 0) return;
    const at = now ?? this.#parts.monotonic();
    const former = this.#received.find((received) => received.id === id);
    if (former === undefined) this.#received.push({ id, statuses, at });
    else {
      former.statuses = statuses;
      former.at = at;
    }
  }

  /** Logs a failed release. The slots then expire after the longest time that the request can last. */
  #logNotReleased(cause: unknown): void {
    this.#parts.log({
      level: "error",
      event: "limits_not_released",
      request_id: this.#request.id,
      ...describeFailure(cause),
    });
  }
}

/** Computes the status of a limit after a release. The remaining amount is exact, the reset time an upper bound. */
function withoutCost({ limitRequest, remaining, resetMs }: LimitStatus): LimitStatus {
  const { limit, cost } = limitRequest;
  const isFree = remaining + cost >= limit;
  return { limitRequest, remaining: isFree ? limit : remaining + cost, resetMs: isFree ? 0 : resetMs };
}
