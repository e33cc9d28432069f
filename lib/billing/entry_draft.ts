/** Collects the facts of a request for its ledger entry, from its arrival to its end. */
import type { Target } from "../catalog/model.ts";
import type { TargetRefusal } from "../errors.ts";
import type { Affinity, Entry, EntryAttempt, EntryDetails, EntryReason } from "../store/ledger.ts";

/** Maximum number of attempts that an entry lists. */
const MAX_LISTED_ATTEMPTS = 16;

/**
 * If the first attempt begins this late, in milliseconds, the entry lists it even if it succeeds: its upstream did not
 * cause the delay.
 */
const LATE_START_MS = 1_000;

/** The members of an entry that are known at the arrival of its request. */
export type ArrivalFacts = Pick<Entry, "id" | "keyId" | "group" | "endpoint">;

/** The members of an entry that are known at the end of its request. */
export interface EndFacts
  extends Pick<Entry, "model" | "status" | "ending" | "tokens" | "source" | "cost" | "held" | "overrun" | "images"> {
  /** Absent if nothing is charged. */
  sheet?: Entry["sheet"];
  /** The end, monotonic time in milliseconds. */
  now: number;
}

/** The output limit of an attempt, in tokens. */
export interface OutputLimit {
  /** The limit that the gateway set for a budget. */
  cap?: number;
  /** The limit that the client set. */
  requested?: number | undefined;
}

/** The entry of a request that has not ended. The steps of the request record their facts here. */
export class EntryDraft {
  readonly #request: ArrivalFacts;
  readonly #monotonic: () => number;
  /** Arrival, Unix time in milliseconds. */
  readonly arrivedAt: number;
  /** Arrival, monotonic time in milliseconds. */
  readonly #startedAt: number;
  #attribution: Pick<EntryDetails, "user" | "tags"> | undefined;
  #attemptCount = 0;
  /** The same without the current attempt. */
  #endedCount = 0;
  #upstream = "";
  #affinity: Affinity | undefined;
  /** The ended attempts; `undefined` until one fails or starts late, since most requests succeed at their first. */
  #attempts: EntryAttempt[] | undefined;
  #firstMs: number | undefined;
  /** The model at the upstream of the current attempt, with its prices; undefined if they are not known. */
  target: Pick<Target, "model" | "pricing"> | undefined;
  /** The upstream's id of the current attempt; undefined if there is none. */
  vendorRequestId: string | undefined;
  /** Targets that were passed over because they were unavailable; undefined if there are none. */
  skipped: readonly TargetRefusal[] | undefined;
  /** Members of the request that the upstream of the current attempt does not support. */
  dropped: readonly string[] = [];
  /** The output limit of the current attempt; undefined if it is not known. */
  outputLimit: OutputLimit | undefined;

  /** @param clock `now`: Unix time in milliseconds; `monotonic`: monotonic time in milliseconds */
  constructor(request: ArrivalFacts, { now, monotonic }: { now: () => number; monotonic: () => number }) {
    this.#request = request;
    this.#monotonic = monotonic;
    this.arrivedAt = now();
    this.#startedAt = monotonic();
  }

  /** The end user that the client names; undefined if it names none, or is not read yet. */
  get user(): string | undefined {
    return this.#attribution?.user;
  }

  /** Number of requests that were sent to upstreams, with that of the current attempt. */
  get attempts(): number {
    return this.#attemptCount;
  }

  /** Records the end user and tags that the client named, unless they are recorded already. */
  attribute(attribution: Pick<EntryDetails, "user" | "tags">): void {
    this.#attribution = { ...attribution, ...this.#attribution };
  }

  /**
   * Records the start of an attempt, and forgets the facts of the one before it.
   * @param target the model at the upstream, with its prices if they are known
   * @param affinity absent if there was no choice of targets, or no conversation
   */
  beginAttempt(upstream: string, target?: Pick<Target, "model" | "pricing">, affinity?: Affinity): void {
    this.#attemptCount++;
    this.#affinity = affinity;
    this.#upstream = upstream;
    this.target = target;
    this.vendorRequestId = undefined;
    this.dropped = [];
    this.outputLimit = undefined;
  }

  /** Records the end of an attempt. Adds the upstream's id to a successful one. */
  recordAttempt(attempt: EntryAttempt): void {
    // An `unfit` attempt has sent nothing.
    if (attempt.outcome === "unfit") this.#attemptCount = this.#endedCount;
    this.#endedCount = this.#attemptCount;
    if (attempt.outcome === "success") {
      const beforeMs = this.#monotonic() - this.#startedAt - attempt.ms;
      if (this.#attempts === undefined && beforeMs < LATE_START_MS) return;
      if (this.vendorRequestId !== undefined) attempt.request_id = this.vendorRequestId;
    }
    this.#attempts ??= [];
    if (this.#attempts.length < MAX_LISTED_ATTEMPTS) this.#attempts.push(attempt);
  }

  /** Records that the answer of the current attempt broke off: it is listed, although it had begun. */
  recordBreak(attempt: EntryAttempt): void {
    if (attempt.request_id === undefined && this.vendorRequestId !== undefined) {
      attempt.request_id = this.vendorRequestId;
    }
    if (this.#attempts?.at(-1)?.outcome === "success") this.#attempts.pop();
    this.recordAttempt(attempt);
  }

  /** Records the time of the first event or byte of the answer. */
  recordFirstOutput(): void {
    this.#firstMs ??= Math.round(this.#monotonic() - this.#startedAt);
  }

  toEntry(end: EndFacts, details?: EntryDetails): Entry {
    const { model, status, ending, tokens, source, sheet, cost, held, overrun, images, now } = end;
    const { id, keyId, group, endpoint } = this.#request;
    // One object literal, so that all entries have the same hidden class.
    const entry: Entry = {
      id,
      at: this.arrivedAt,
      keyId,
      group,
      model,
      upstream: this.#upstream,
      endpoint,
      status,
      ending,
      tokens,
      source,
      cost,
      held,
      overrun,
      totalMs: Math.round(now - this.#startedAt),
      attempts: this.#attemptCount,
      images,
    };
    if (this.#firstMs !== undefined) entry.firstMs = this.#firstMs;
    if (sheet !== undefined) entry.sheet = sheet;
    const allDetails = this.#details(ending, details);
    if (allDetails !== undefined) entry.details = allDetails;
    return entry;
  }

  /** Adds the recorded facts that few entries have to the details. */
  #details(ending: Entry["ending"], details: EntryDetails | undefined): EntryDetails | undefined {
    const attempts = this.#attempts;
    const dropped = this.dropped.length === 0 ? undefined : this.dropped;
    const affinity = this.#affinity;
    const { skipped, outputLimit } = this;
    const max_tokens = outputLimit?.cap;
    const requested_max_tokens = ending === "length" ? outputLimit?.requested : undefined;
    // In a list of attempts, each has its own id.
    const request_id = attempts === undefined ? this.vendorRequestId : undefined;
    const hasMore = (attempts ?? dropped ?? affinity ?? skipped ?? max_tokens ?? requested_max_tokens ?? request_id ??
      this.#attribution) !== undefined;
    if (!hasMore) return details;
    return {
      ...details,
      ...(requested_max_tokens !== undefined && { requested_max_tokens }),
      ...(attempts !== undefined && { attempts }),
      ...(request_id !== undefined && { request_id }),
      ...(skipped !== undefined && { skipped }),
      ...(dropped !== undefined && { dropped }),
      ...(max_tokens !== undefined && { max_tokens }),
      ...(affinity !== undefined && { affinity }),
      ...this.#attribution,
    };
  }

  /** Removes the broken rule from a reason if it may be a vendor's text, which may quote the prompt. */
  withoutQuotes({ rule, ...reason }: EntryReason): EntryReason {
    return rule !== undefined && this.#attemptCount === 0 ? { ...reason, rule } : reason;
  }
}
