/** The limit reservations of one request. */
import { nameOf } from "../errors.ts";
import { limitOwnerOf } from "../limits/limit_requests.ts";
import { createLimitError } from "../limits/errors.ts";
import type { AdmissionRequest, LimitDecision, Limiter, LimitStatus } from "../limits/limiter.ts";
import type { Log } from "../log_events.ts";

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

/** The reservations of one request, each under an id of its own. */
export class Reservation {
  readonly #parts: ReservationParts;
  readonly #request: string;
  /** Ids that may be reserved. */
  #ids: string[] = [];
  /** Ids that were released before the request's entry was durable. */
  readonly #unentered: string[] = [];
  /** Limit statuses by id, with the monotonic time of their receipt. */
  readonly #received: { id: string; statuses: readonly LimitStatus[]; at: number }[] = [];

  /** @param request the gateway's id of the request */
  constructor(parts: ReservationParts, request: string) {
    this.#parts = parts;
    this.#request = request;
  }

  /**
   * Reserves limits. Only a refusal under the request's own id sets the limit statuses.
   * @returns absent if that finished synchronously
   * @throws {GatewayError} `limited`
   */
  take(request: AdmissionRequest): Promise<void> | undefined {
    const { id } = request;
    // Noted before the answer, so that the reservation is released even if the answer is lost.
    this.#ids.push(id);
    const decision = this.#parts.limiter.take(request);
    if (decision instanceof Promise) return decision.then((decision) => this.#record(id, decision));
    this.#record(id, decision);
    return undefined;
  }

  #record(id: string, decision: LimitDecision): void {
    const { log, observer } = this.#parts;
    // The refusal of an alternative model does not concern the model that answers.
    if (decision.admitted || id === this.#request) this.#keep(id, decision.statuses);
    if (!decision.admitted) {
      this.#ids.pop();
      const refusing = decision.over.find(({ reportOnly }) => !reportOnly);
      if (refusing !== undefined) observer?.refused(limitOwnerOf(refusing).type, refusing.unit);
      throw createLimitError(decision);
    }
    if (decision.over.length > 0) observer?.exceeded();
    for (const { name, unit, limit } of decision.over) {
      log({ level: "warn", event: "limit_exceeded", request_id: this.#request, name, unit, limit, report_only: true });
    }
  }

  /** Releases everything as if the request had never been made. Never rejects. */
  async undo(): Promise<void> {
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

  /** Forgets the limit statuses of a refused admission. */
  forget(): void {
    this.#received.length = 0;
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
    this.#parts.log({ level: "error", event: "limits_not_released", request_id: this.#request, cause: nameOf(cause) });
  }
}

/** The status of a limit after the release of a reservation. The remainder is exact, the reset time an upper bound. */
function withoutCost({ limitRequest, remaining, resetMs }: LimitStatus): LimitStatus {
  const { limit, cost } = limitRequest;
  const isWhole = remaining + cost >= limit;
  return { limitRequest, remaining: isWhole ? limit : remaining + cost, resetMs: isWhole ? 0 : resetMs };
}
