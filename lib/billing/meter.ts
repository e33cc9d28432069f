/** Meters one request from its arrival to its ledger entry: reserves, records what happens, charges, releases. */
import type { Model, Target } from "../catalog/model.ts";
import { GatewayError, type TargetRefusal, toGatewayError } from "../errors.ts";
import type { LimitRequest, LimitStatus } from "../limits/limiter.ts";
import { NO_TOKENS } from "../store/days.ts";
import type {
  Affinity,
  BilledTokens,
  Ending,
  Entry,
  EntryAttempt,
  EntryDetails,
  EntryReason,
  MeteredEndpoint,
  UsageSource,
} from "../store/ledger.ts";
import { computeCharge } from "./price.ts";
import { notEntered } from "./entry_queue.ts";
import { billUsed, costAtTarget, type UsedExtras } from "./extras.ts";
import type { Ledger } from "./ledger.ts";
import { type Amount, formatUsd } from "./money.ts";
import {
  type AdmissionTerms,
  type LimitWatch,
  type ModelTerms,
  Reservation,
  type ReservationParts,
} from "./reservation.ts";

/** Facts of a request at its arrival. */
export interface Arrival {
  /** The gateway's id of the request. */
  id: string;
  keyId: string;
  group: string;
  endpoint: MeteredEndpoint;
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
  ending: Extract<
    Ending,
    "end" | "stop_sequence" | "length" | "tool_use" | "refusal" | "pause" | "done" | "partial" | "client_disconnected"
  >;
  tokens: BilledTokens;
  source: UsageSource;
  images?: number;
  details?: EntryDetails;
  /** Extras that the upstream reports; absent: none. */
  used?: UsedExtras;
}

/** Receives the results of meters. */
export interface MeterWatch extends LimitWatch {
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

/** The members of an entry about the end of a request and its cost. */
type Charged = Pick<Entry, "status" | "ending" | "tokens" | "source" | "cost" | "overrun" | "images">;

/** Most attempts that an entry lists. */
const MAX_LISTED_ATTEMPTS = 16;

/**
 * If the first attempt begins this late, in milliseconds, the entry lists it even if it succeeds: its upstream did not
 * cause the delay.
 */
const LATE_START_MS = 1_000;

/** The charge of a request that failed or was refused. */
const FREE = { tokens: NO_TOKENS, source: "none", cost: 0n, overrun: 0n, images: 0 } as const;

/** The output limit of an attempt, in tokens. */
export interface OutputLimit {
  /** The limit that the gateway set for a budget. */
  cap?: number;
  /** The limit that the client set. */
  requested?: number | undefined;
}

/**
 * Meters one request. The request ends once, with the first call of `deliver` or `fail`: then the meter releases its
 * limits and holds, and writes its entry.
 */
export class Meter {
  readonly #parts: MeterParts;
  readonly #arrival: Arrival;
  /** Arrival, Unix time in milliseconds. */
  readonly arrivedAt: number;
  /** Arrival, monotonic time in milliseconds. */
  readonly #startedAt: number;
  readonly #reservation: Reservation;
  #terms: AdmissionTerms | undefined;
  /** A reservation in progress; undefined if there is none. */
  #admitting: Promise<void> | undefined;
  /** Models whose own limits are reserved; empty before admission. */
  readonly #models: Model[] = [];
  #attemptCount = 0;
  #upstream = "";
  #target: Pick<Target, "model" | "pricing"> | undefined;
  #affinity: Affinity | undefined;
  #attribution: Pick<EntryDetails, "user" | "tags"> | undefined;
  /** The upstream's id of the last attempt. */
  #requestId: string | undefined;
  #skipped: readonly TargetRefusal[] | undefined;
  /** The ended attempts; `undefined` until one fails or starts late, since most requests succeed at their first. */
  #attemptList: EntryAttempt[] | undefined;
  #dropped: readonly string[] = [];
  #outputLimit: OutputLimit | undefined;
  #firstMs: number | undefined;
  #ended = false;
  /** Resolves when the request has ended and its entry is written or queued. */
  readonly done: Promise<void>;
  readonly #resolveDone: () => void;

  /** Opens the meter of a new request. It reserves nothing before `admit`. */
  constructor(parts: MeterParts, arrival: Arrival) {
    ({ promise: this.done, resolve: this.#resolveDone } = Promise.withResolvers<void>());
    this.#parts = parts;
    this.#arrival = arrival;
    this.arrivedAt = parts.now();
    this.#startedAt = parts.monotonic();
    this.#reservation = new Reservation(parts, { ...arrival, at: this.arrivedAt });
    if (arrival.record !== undefined) arrival.record.waits++;
  }

  /** True if the request has ended. */
  get ended(): boolean {
    return this.#ended;
  }

  /** The end user that the client names; undefined if it names none, or is not read yet. */
  get user(): string | undefined {
    return this.#attribution?.user;
  }

  /** True if an attempt at an upstream has begun. */
  get hasAttempted(): boolean {
    return this.#attemptCount > 0;
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
   * Records the start of an attempt.
   * @param target the model at the upstream, with its prices if they are known
   * @param affinity absent if there was no choice of targets, or no conversation
   */
  beginAttempt(upstream: string, target?: Pick<Target, "model" | "pricing">, affinity?: Affinity): void {
    this.#attemptCount++;
    this.#affinity = affinity;
    this.#upstream = upstream;
    this.#target = target;
    this.#requestId = undefined;
  }

  /** Records the end user and tags that the client named. */
  attribute(attribution: Pick<EntryDetails, "user" | "tags">): void {
    this.#attribution = { ...attribution, ...this.#attribution };
  }

  /** Records the upstream's id of the current attempt. */
  recordRequestId(requestId: string): void {
    this.#requestId = requestId;
  }

  /** Records targets that were passed over because they were unavailable. */
  skip(targets: readonly TargetRefusal[]): void {
    this.#skipped = targets;
  }

  /** Records the end of an attempt. Adds the upstream's id to a successful one. */
  recordAttempt(attempt: EntryAttempt): void {
    if (attempt.outcome === "success") {
      const beforeMs = this.#parts.monotonic() - this.#startedAt - attempt.ms;
      if (this.#attemptList === undefined && beforeMs < LATE_START_MS) return;
      if (this.#requestId !== undefined) attempt.request_id = this.#requestId;
    }
    this.#attemptList ??= [];
    if (this.#attemptList.length < MAX_LISTED_ATTEMPTS) this.#attemptList.push(attempt);
  }

  /** Records that the answer of the current attempt broke off: it is listed, although it had begun. */
  recordBreak(attempt: EntryAttempt): void {
    if (attempt.request_id === undefined && this.#requestId !== undefined) attempt.request_id = this.#requestId;
    if (this.#attemptList?.at(-1)?.outcome === "success") this.#attemptList.pop();
    this.recordAttempt(attempt);
  }

  /** Records the members of the request that the upstream of the current attempt does not support. */
  recordDropped(members: readonly string[]): void {
    this.#dropped = members;
  }

  /** Records the output limit of the current attempt. */
  limitOutput(limit: OutputLimit): void {
    this.#outputLimit = limit;
  }

  /** Records the time of the first event or byte of the answer. */
  recordFirstOutput(): void {
    this.#firstMs ??= Math.round(this.#parts.monotonic() - this.#startedAt);
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
      const { sheet, details: billed } = this.#bill(delivered, terms);
      const requested = ending === "length" ? this.#outputLimit?.requested : undefined;
      const details = this.#details(requested === undefined ? billed : { ...billed, requested_max_tokens: requested });
      const { cost, overrun } = computeCharge({ tokens, sheet, extras: details?.extras, held: this.#reservation.held });
      const now = this.#parts.monotonic();
      const entry = this.#entry({ status, ending, tokens, source, cost, overrun, images, now });
      entry.sheet = sheet;
      if (details !== undefined) entry.details = details;
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
    const isTierDropped = terms.tierParameter !== undefined && this.#dropped.includes(terms.tierParameter);
    const tier = isTierDropped ? undefined : terms.tier;
    const { sheet, details: billed } = billUsed(delivered, { ...terms, tier });
    const upstreamCost = this.#target?.pricing === undefined
      ? undefined
      : costAtTarget(this.#target, { tokens, used, extras: ownDetails?.extras }, {
        at: this.arrivedAt,
        tier,
      });
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
    await this.#note(
      status,
      this.#attemptCount > 0 ? "failed" : "refused",
      this.#withoutQuotes(reason),
    );
    this.#resolveDone();
  }

  /** Removes the broken rule from a reason if it may be a vendor's text, which may quote the prompt. */
  #withoutQuotes({ rule, ...reason }: EntryReason): EntryReason {
    const attempts = this.#attemptList ?? [];
    const wasNeverSent = this.#attemptCount === 0 ||
      (attempts.length === this.#attemptCount && attempts.every(isUnfit));
    return rule !== undefined && wasNeverSent ? { ...reason, rule } : reason;
  }

  async #note(status: number, ending: "failed" | "refused", reason: EntryReason): Promise<void> {
    const entry = this.#entry({ status, ending, ...FREE, now: this.#parts.monotonic() });
    entry.details = this.#details({ reason });
    await this.#parts.ledger.note(entry);
    this.#observe(entry);
  }

  #observe(entry: Entry): void {
    if (this.#arrival.record !== undefined) this.#parts.observer?.ended(this.#arrival.record, entry);
  }

  #details(details: EntryDetails): EntryDetails;
  #details(details: EntryDetails | undefined): EntryDetails | undefined;
  #details(details: EntryDetails | undefined): EntryDetails | undefined {
    const attempts = this.#attemptList;
    const dropped = this.#dropped.length === 0 ? undefined : this.#dropped;
    const affinity = this.#affinity;
    const skipped = this.#skipped;
    const max_tokens = this.#outputLimit?.cap;
    // In a list of attempts, each has its own id.
    const request_id = attempts === undefined ? this.#requestId : undefined;
    const hasMore =
      (attempts ?? dropped ?? affinity ?? skipped ?? max_tokens ?? request_id ?? this.#attribution) !== undefined;
    if (!hasMore) return details;
    return {
      ...details,
      ...(attempts !== undefined && { attempts }),
      ...(request_id !== undefined && { request_id }),
      ...(skipped !== undefined && { skipped }),
      ...(dropped !== undefined && { dropped }),
      ...(max_tokens !== undefined && { max_tokens }),
      ...(affinity !== undefined && { affinity }),
      ...this.#attribution,
    };
  }

  /**
   * Returns the entry without prices and details. One object literal, so that all entries have the same hidden class.
   */
  #entry({ status, ending, tokens, source, cost, overrun, images, now }: Charged & { now: number }): Entry {
    const { id, keyId, group, endpoint } = this.#arrival;
    const entry: Entry = {
      id,
      at: this.arrivedAt,
      keyId,
      group,
      model: this.#terms?.model.id ?? "",
      upstream: this.#upstream,
      endpoint,
      status,
      ending,
      tokens,
      source,
      cost,
      held: this.#reservation.held,
      overrun,
      totalMs: Math.round(now - this.#startedAt),
      attempts: this.#attemptCount,
      images,
    };
    if (this.#firstMs !== undefined) entry.firstMs = this.#firstMs;
    return entry;
  }
}

/** Returns the tokens that count against limits: all but those read from a cache. */
function limitedTokens({ prompt, input_cache_write_5m, input_cache_write_1h, completion }: BilledTokens): number {
  return prompt + input_cache_write_5m + input_cache_write_1h + completion;
}

function isUnfit({ outcome }: EntryAttempt): boolean {
  return outcome === "unfit";
}
