/** The reservations of one request: its limits, and the hold on its budgets. */
import type { Model } from "../catalog/model.ts";
import { nameOf } from "../errors.ts";
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
  /** Limits that the request counts against. */
  limitRequests: readonly LimitRequest[];
  /** Budgets that the request counts against. */
  budgets: readonly BudgetClaim[];
  /** The most that the request can cost. */
  maxCost: Amount;
  /**
   * Returns the most that the request can cost when a budget has only `available`, or more than that if it cannot cost
   * less. Absent: the request needs the whole amount.
   */
  costWithin?: (available: Amount) => Amount;
  /** The longest that the request can last, in milliseconds. */
  forMs: number;
  /** True: the answer is sent as a whole, so the limit statuses are needed only at its end. */
  isWhole?: boolean;
}

/** The part of the terms that another model of the same request has of its own. */
export type ModelTerms = Pick<AdmissionTerms, "model" | "sheet" | "extraPrices" | "limitRequests">;

/** Most attempts to hold a smaller amount: one for each of two budgets, and one for concurrent requests. */
const MAX_REDUCTIONS = 3;

/** Observes limit decisions. */
export interface LimitWatch {
  /** Called when a limit or budget refuses a request, with its owner (`key`, `group`, `model`) and unit. */
  refused(owner: string, unit: string): void;
  /** Called when a report-only limit would have refused a request. */
  exceeded(): void;
}

/** Parts of reservations. */
export interface ReservationParts {
  limiter: Limiter;
  ledger: Pick<Ledger, "hold">;
  /** Monotonic time in milliseconds. */
  monotonic: () => number;
  log: Log;
  observer?: LimitWatch;
}

/** Options of the end of a reservation. */
interface EndOptions {
  now?: number;
  isEntered?: boolean;
}

/** The reservations of one request: its limits, each under an id of its own, and the hold on its budgets. */
export class Reservation {
  readonly #parts: ReservationParts;
  readonly #request: Omit<AdmittedRequest, "model">;
  #heldAmount: Amount = 0n;
  /** Number of models besides the first whose own limits were asked for. */
  #others = 0;
  /** Ids that may be reserved. */
  #ids: string[] = [];
  /** Ids that were released before the request's entry was durable. */
  readonly #unentered: string[] = [];
  /** Limit statuses by id, with the monotonic time of their receipt. */
  readonly #received: { id: string; statuses: readonly LimitStatus[]; at: number }[] = [];

  constructor(parts: ReservationParts, { id, at, keyId, group, endpoint }: Omit<AdmittedRequest, "model">) {
    this.#parts = parts;
    this.#request = { id, at, keyId, group, endpoint };
  }

  /** The held amount; 0 if no budget applies. */
  get held(): Amount {
    return this.#heldAmount;
  }

  /**
   * Reserves limits, then holds budgets. If one of them refuses, nothing stays reserved.
   * @returns absent if that finished synchronously
   * @throws {GatewayError} `limited`
   */
  take(terms: AdmissionTerms): Promise<void> | undefined {
    const { limitRequests, forMs, isWhole = false, model } = terms;
    // Those of a refused admission.
    this.#received.length = 0;
    const needsHold = terms.maxCost > 0n && terms.budgets.length > 0;
    // If a budget refuses, the limits are returned, and their statuses are computed from those of the admission.
    const skipStatuses = isWhole && !needsHold;
    // A request with a budget hold is entered as lost when its hold runs out.
    const running = needsHold ? undefined : model;
    const reserving = this.#takeLimits(limitRequests, { id: this.#request.id, forMs, skipStatuses, running });
    return reserving === undefined && !needsHold ? undefined : this.#takeAll(reserving, needsHold ? terms : undefined);
  }

  /** Reserves the own limits of another model, which may answer instead. Returns and throws as `take`. */
  takeMore(
    limitRequests: readonly LimitRequest[],
    { model, terms }: { model: Model; terms: AdmissionTerms },
  ): Promise<void> | undefined {
    const id = `${this.#request.id}/${++this.#others}`;
    // Once for each request: an earlier reservation already carries these facts.
    const running = terms.limitRequests.length > 0 || this.#heldAmount > 0n ? undefined : model;
    return this.#takeLimits(limitRequests, { id, forMs: terms.forMs, skipStatuses: true, running });
  }

  /** @param options `running`: the model for which other nodes get to know the request; absent: they do not */
  #takeLimits(
    limitRequests: readonly LimitRequest[],
    { id, running, ...options }:
      & Pick<AdmissionRequest, "id" | "forMs" | "skipStatuses">
      & { running: Model | undefined },
  ): Promise<void> | undefined {
    if (limitRequests.length === 0) return undefined;
    // Noted before the answer, so that the reservation is released even if the answer is lost.
    this.#ids.push(id);
    const decision = this.#parts.limiter.take({
      id,
      limitRequests,
      ...options,
      running: running && { ...this.#request, model: running.id },
    });
    if (decision instanceof Promise) return decision.then((decision) => this.#record(id, decision));
    this.#record(id, decision);
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

  /** Holds the whole amount if the budgets allow it, else the smaller amount of `costWithin`. */
  async #hold({ model, budgets, maxCost, costWithin, forMs }: AdmissionTerms): Promise<void> {
    let amount = maxCost;
    for (let less = 0;; less++) {
      const hold = { ...this.#request, model: model.id, amount, claims: budgets };
      const answer = await this.#parts.ledger.hold(hold, forMs);
      if (answer.held) break;
      const smaller = less < MAX_REDUCTIONS ? costWithin?.(answer.available) : undefined;
      if (smaller === undefined || smaller > answer.available) {
        this.#parts.observer?.refused(answer.claim.scope, "usd");
        throw budgetError(answer, { maxCost: smaller ?? amount });
      }
      amount = smaller;
    }
    this.#heldAmount = amount;
  }

  #record(id: string, decision: LimitDecision): void {
    const { log, observer } = this.#parts;
    // The refusal of an alternative model does not concern the model that answers.
    if (decision.admitted || id === this.#request.id) this.#keep(id, decision.statuses);
    if (!decision.admitted) {
      this.#ids.pop();
      const refusing = decision.exceeded.find(({ reportOnly }) => !reportOnly);
      if (refusing !== undefined) observer?.refused(limitOwnerOf(refusing).type, refusing.unit);
      throw createLimitError(decision);
    }
    if (decision.exceeded.length > 0) observer?.exceeded();
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
    for (const id of this.#ids.splice(0)) {
      try {
        await this.#parts.limiter.undo(id);
        this.#keep(id, (this.#received.find((found) => found.id === id)?.statuses ?? []).map(withoutCost));
      } catch (cause) {
        this.#report(cause);
      }
    }
  }

  /**
   * Releases the concurrency slots, and replaces the estimated tokens by the actual ones. Never rejects.
   * @param options `now`: the current time, if known; `isEntered` false: other nodes know the request until
   * `confirmEntry`
   * @returns absent if that finished synchronously
   */
  end(tokens: number, options: EndOptions = {}): Promise<unknown> | undefined {
    const ids = this.#ids;
    const [first] = ids;
    if (first === undefined) return undefined;
    this.#ids = [];
    return ids.length === 1
      ? this.#end(first, tokens, options)
      : Promise.all(ids.map((id) => this.#end(id, tokens, options)));
  }

  /** Lets other nodes forget the request, because its entry is durable or never will be. */
  confirmEntry(): void {
    for (const id of this.#unentered.splice(0)) this.#parts.limiter.forget?.(id);
  }

  #end(id: string, tokens: number, { now, isEntered = true }: EndOptions): Promise<void> | undefined {
    if (!isEntered) this.#unentered.push(id);
    try {
      const ending = this.#parts.limiter.end(id, tokens, { isEntered });
      if (ending instanceof Promise) {
        return ending.then((statuses) => this.#keep(id, statuses), (cause) => this.#report(cause));
      }
      this.#keep(id, ending, now);
    } catch (cause) {
      this.#report(cause);
    }
    return undefined;
  }

  /** Limit statuses, extrapolated from the last received ones without a call of the limiter. */
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

  #keep(id: string, statuses: readonly LimitStatus[], now?: number): void {
    if (statuses.length === 0) return;
    const at = now ?? this.#parts.monotonic();
    const before = this.#received.find((found) => found.id === id);
    if (before === undefined) this.#received.push({ id, statuses, at });
    else {
      before.statuses = statuses;
      before.at = at;
    }
  }

  /** Logs a failed release. The slots expire at the longest duration of the request. */
  #report(cause: unknown): void {
    this.#parts.log({
      level: "error",
      event: "limits_not_released",
      request_id: this.#request.id,
      cause: nameOf(cause),
    });
  }
}

/** The status of a limit after the release of a reservation. The remainder is exact, the reset time an upper bound. */
function withoutCost({ limitRequest, remaining, resetMs }: LimitStatus): LimitStatus {
  const { limit, cost } = limitRequest;
  const isWhole = remaining + cost >= limit;
  return { limitRequest, remaining: isWhole ? limit : remaining + cost, resetMs: isWhole ? 0 : resetMs };
}
