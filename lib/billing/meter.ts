/** Meters one request from its arrival to its ledger entry: reserves, charges, releases. */
import type { Model } from "../catalog/model.ts";
import { GatewayError, toGatewayError } from "../errors.ts";
import type { LimitRequest, LimitStatus } from "../limits/limiter.ts";
import { NO_TOKENS } from "../store/days.ts";
import type { BilledTokens, Ending, Entry, EntryDetails, EntryReason, UsageSource } from "../store/ledger.ts";
import { computeCharge } from "./price.ts";
import { type ArrivalFacts, EntryDraft } from "./entry_draft.ts";
import { notEntered } from "./entry_queue.ts";
import { billUsed, costAtTarget, type UsedExtras } from "./extras.ts";
import type { Ledger } from "./ledger.ts";
import { type Amount, formatUsd } from "./money.ts";
import {
  type AdmissionTerms,
  type LimitCounts,
  type ModelTerms,
  Reservation,
  type ReservationParts,
} from "./reservation.ts";

/** A request that arrives. */
export interface Arrival extends ArrivalFacts {
  /** The observer's record of the request; absent: it is not observed. */
  record?: ObservedRecord;
}

/** The part of an observer's record of a request that a meter changes. */
export interface ObservedRecord {
  /** Number of events that the observer still awaits before the record is complete. */
  waits: number;
}

/** Output and usage of a request that was answered in whole or in part. */
export interface Delivered {
  status: number;
  ending: Exclude<Ending, "failed" | "refused" | "lost">;
  tokens: BilledTokens;
  source: UsageSource;
  images?: number;
  details?: EntryDetails;
  /** Extras that the upstream reports; absent: none. */
  used?: UsedExtras;
}

/** Receives the results of meters. */
export interface MeterWatch {
  readonly counts: LimitCounts;
  /** Called with the entry of a request when it has ended. */
  ended(record: ObservedRecord, entry: Entry): void;
}

/** Dependencies of meters. */
export interface MeterParts extends ReservationParts {
  ledger: Ledger;
  /** Unix time in milliseconds. */
  now: () => number;
  observer?: MeterWatch;
}

/** The charge of a request that failed or was refused. */
const FREE = { tokens: NO_TOKENS, source: "none", cost: 0n, overrun: 0n, images: 0 } as const;

/**
 * Meters one request. The request ends once, with the first call of `deliver` or `fail`: then the meter releases its
 * limits and holds, and writes its entry.
 */
export class Meter {
  readonly #parts: MeterParts;
  readonly #record: ObservedRecord | undefined;
  readonly entry: EntryDraft;
  readonly #reservation: Reservation;
  #terms: AdmissionTerms | undefined;
  /** A reservation in progress; undefined if there is none. */
  #admitting: Promise<void> | undefined;
  /** Models whose own limits are reserved; empty before admission. */
  readonly #models: Model[] = [];
  #ended = false;
  /** Resolves when the request has ended and its entry is written or queued. */
  readonly done: Promise<void>;
  readonly #resolveDone: () => void;

  /** Opens the meter of a new request. It reserves nothing before `admit`. */
  constructor(parts: MeterParts, arrival: Arrival) {
    ({ promise: this.done, resolve: this.#resolveDone } = Promise.withResolvers<void>());
    this.#parts = parts;
    this.#record = arrival.record;
    this.entry = new EntryDraft(arrival, parts);
    this.#reservation = new Reservation(parts, { ...arrival, at: this.entry.arrivedAt });
    if (this.#record !== undefined) this.#record.waits++;
  }

  /** True if the request has ended. */
  get ended(): boolean {
    return this.#ended;
  }

  /**
   * Reserves limits, then holds budgets. If one of them refuses, nothing stays reserved, and `admit` may be called
   * again with other terms.
   * @returns undefined if this finished synchronously, as with limits in memory and no budget
   * @throws {GatewayError} `limited`; `overloaded` if the ledger cannot be written
   */
  admit(terms: AdmissionTerms): Promise<void> | undefined {
    if (this.#models.length > 0 || this.#ended) throw new TypeError("Cannot admit a request twice, or after its end");
    this.#terms = terms;
    if (terms.maxCost > 0n && !this.#parts.ledger.healthy) throw notEntered();
    const reserving = this.#reservation.take(terms);
    if (reserving !== undefined) return this.#addModelAfter(reserving, terms.model);
    this.#models.push(terms.model);
    return undefined;
  }

  /**
   * Switches to another model at its own prices, and reserves that model's own limits. The held amount must cover the
   * highest cost at the other model, too.
   * @returns undefined if it is the current model
   * @throws {GatewayError} `limited`; the model is then unchanged
   */
  switchModel(to: ModelTerms): Promise<void> | undefined {
    const terms = this.#terms;
    if (terms === undefined || this.#ended) {
      throw new TypeError("Cannot switch the model of a request that is not admitted or has ended");
    }
    return terms.model === to.model && terms.sheet === to.sheet ? undefined : this.#switchModelTo(to, terms);
  }

  async #switchModelTo({ model, sheet, extraPrices, limitRequests }: ModelTerms, terms: AdmissionTerms): Promise<void> {
    let needed: readonly LimitRequest[] = [];
    if (!this.#models.includes(model)) {
      needed = limitRequests;
      await this.#addModelAfter(this.#reservation.takeMore(needed, { model, terms }), model);
    }
    this.#terms = { ...terms, model, sheet, extraPrices, limitRequests: [...terms.limitRequests, ...needed] };
  }

  /** Waits for a reservation and adds its model. If the request ends meanwhile, its end waits for it and releases it. */
  async #addModelAfter(reserving: Promise<void> | undefined, model: Model): Promise<void> {
    this.#admitting = reserving;
    try {
      await reserving;
    } finally {
      this.#admitting = undefined;
    }
    if (this.#ended) throw new GatewayError("internal", "Cannot admit the request: it has ended");
    this.#models.push(model);
  }

  /**
   * Returns the limit statuses of the admission, and after the end those with the actual number of tokens. Does not
   * call the limiter. Empty before `admit`.
   */
  limitStatuses(): LimitStatus[] {
    return this.#reservation.limitStatuses();
  }

  /**
   * Charges the delivered output. Resolves when the entry is durable, to the amount that the customer pays: 0 if the
   * request had ended before, or its hold had expired.
   * @throws {GatewayError} `overloaded` if the entry cannot be written: the answer must not be completed then
   */
  async deliver(delivered: Delivered): Promise<Amount> {
    if (this.#ended) return 0n;
    const terms = this.#terms;
    if (terms === undefined) throw new TypeError("Cannot charge a request that was not admitted");
    this.#ended = true;
    const { tokens, source, status, ending, images = 0 } = delivered;
    let released: Promise<unknown> | undefined;
    try {
      if (this.#admitting !== undefined) await this.#admitting;
      const { sheet, details } = this.#bill(delivered, terms);
      const held = this.#reservation.held;
      const { cost, overrun } = computeCharge({ tokens, sheet, extras: details?.extras, held });
      const now = this.#parts.monotonic();
      const entry = this.entry.toEntry(
        { model: terms.model.id, status, ending, tokens, source, sheet, cost, held, overrun, images, now },
        details,
      );
      // Released while the entry is written, since the client waits for both. With `isEntered: false`, other nodes keep
      // the request on their lists until `confirmEntry`.
      released = this.#reservation.end(limitedTokens(tokens), { now, isEntered: false });
      const isNew = await this.#parts.ledger.enter(entry);
      // The entry is not new if the hold had expired, or if an earlier write succeeded but its reply was lost.
      const paid = isNew ? cost : (await this.#parts.ledger.find(entry.id))?.cost ?? 0n;
      this.#observe(paid === cost ? entry : { ...entry, cost: paid });
      return paid;
    } catch (cause) {
      // The answer is not completed, so it is not charged. The entry releases the hold as soon as it can be written.
      const reason: EntryReason = cause instanceof GatewayError
        ? { code: "unavailable", ...cause.refusal }
        : { code: "internal" };
      await this.#note(toGatewayError(cause).status, "failed", reason);
      throw cause;
    } finally {
      released ??= this.#reservation.end(limitedTokens(tokens));
      this.#reservation.confirmEntry();
      if (released !== undefined) await released;
      this.#resolveDone();
    }
  }

  /** Returns the price sheet of the answer, and the details of its entry. */
  #bill(delivered: Delivered, terms: AdmissionTerms): ReturnType<typeof billUsed> {
    const { tokens, used, details: ownDetails } = delivered;
    // A tier that did not reach the upstream is not billed.
    const isTierDropped = terms.tierParameter !== undefined && this.entry.dropped.includes(terms.tierParameter);
    const tier = isTierDropped ? undefined : terms.tier;
    const { sheet, details: billed } = billUsed(delivered, { ...terms, tier });
    const { target, arrivedAt: at } = this.entry;
    const upstreamCost = target && costAtTarget(target, { tokens, used, extras: ownDetails?.extras }, { at, tier });
    // `budgetClaims` lists the claim of an end user first.
    const [claim] = terms.budgets;
    const userClaim = claim?.scope === "user" ? claim : undefined;
    if ((ownDetails ?? billed ?? upstreamCost ?? userClaim) === undefined) return { sheet };
    const details = {
      ...ownDetails,
      ...billed,
      ...(upstreamCost !== undefined && { upstream_usd: formatUsd(upstreamCost) }),
      ...(userClaim !== undefined && { user_since: userClaim.since }),
    };
    return { sheet, details };
  }

  /** Ends the request without a charge: `failed`, or `refused` if no attempt was made. Never rejects. */
  async fail(status: number, reason: EntryReason): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    try {
      // A hold in progress must exist before the entry that ends it.
      if (this.#admitting !== undefined) await this.#admitting;
    } catch {
      // The caller of `admit` handles this error.
    }
    const released = this.#reservation.end(0);
    if (released !== undefined) await released;
    await this.#note(status, this.entry.attempts > 0 ? "failed" : "refused", this.entry.withoutQuotes(reason));
    this.#resolveDone();
  }

  async #note(status: number, ending: "failed" | "refused", reason: EntryReason): Promise<void> {
    const model = this.#terms?.model.id ?? "";
    const { held } = this.#reservation;
    const entry = this.entry.toEntry({ model, status, ending, ...FREE, held, now: this.#parts.monotonic() }, {
      reason,
    });
    await this.#parts.ledger.note(entry);
    this.#observe(entry);
  }

  #observe(entry: Entry): void {
    if (this.#record !== undefined) this.#parts.observer?.ended(this.#record, entry);
  }
}

/** Returns the tokens that count against limits: all but those read from a cache. */
function limitedTokens({ prompt, input_cache_write_5m, input_cache_write_1h, completion }: BilledTokens): number {
  return prompt + input_cache_write_5m + input_cache_write_1h + completion;
}
