/**
 * Implements `Idempotency-Key`: repeats of a request get the first answer, and the work is not done again. The store
 * has the answers, and the claim of the one node that does the work. Repeats on that node wait for the work and share
 * its result, even a failure. Repeats on other nodes poll the store. A failure is not stored; after one, another node
 * does the work.
 */
import { GatewayError } from "../errors.ts";
import { type StartTimer, startTimer } from "../start_timer.ts";
import { abortable, delay } from "../abort.ts";
import type { AnswerClaim, AnswerRecord, AnswerStore, OtherClaim } from "../store/answers.ts";
import { createReplayCache, isFinal, type ReplayCache, type StoredAnswer, storedAnswer } from "./replay_cache.ts";
import { AnswerRecorder } from "./answer_recorder.ts";
import { claimRequest, type HeldClaim } from "./idempotency_claim.ts";

/** Limits on stored answers and waiting repeats. */
export interface IdempotencyLimits {
  /** Time that an answer is stored, in milliseconds. */
  windowMs: number;
  /** Maximum number of bytes of all stored answers. */
  maxBytes: number;
  /**
   * Maximum number of bytes of one stored answer. A larger one is recorded as done, without its body. Default: a
   * quarter of `maxBytes`, at most 32 MiB.
   */
  maxAnswerBytes?: number;
  /** Maximum number of records, with or without a body. Default: 20,000. */
  maxAnswers?: number;
  /** Maximum number of repeats that may wait for one request. Default: 32. */
  maxWaiting?: number;
  /** Longest wait for the first request, in milliseconds. Default: 15 minutes. */
  waitMs?: number;
  /** Lease of a claim, in milliseconds. Default: 30 seconds. */
  leaseMs?: number;
}

/** Dependencies and limits. */
export interface IdempotencyParts extends IdempotencyLimits {
  store: { readonly answers: AnswerStore };
  /** Unix time in milliseconds. */
  now: () => number;
  /** Resolves to true if the request id was charged; absent: unknown. */
  isCharged?: (requestId: string) => Promise<boolean>;
  /** Called when an answer cannot be stored. The request is still answered. */
  report: (cause: unknown) => void;
  /** Monotonic clock in milliseconds. Default: `performance.now`. */
  monotonic?: () => number;
  /** Schedules a callback. Default: `setTimeout`. */
  later?: StartTimer;
}

/** A request with an idempotency key. */
export interface RepeatableRequest {
  /** Key id and endpoint; idempotency keys are unique within a scope. */
  scope: string;
  /** The idempotency key from the header. */
  key: string;
  /** SHA-256 of the request in hexadecimal, from `hashRequest`. */
  requestHash: string;
  /** The gateway's id of the request, under which it is charged; absent if it is not charged. */
  requestId?: string;
  /** Aborts when this client disconnects. */
  signal: AbortSignal;
  /**
   * Admits a repeat before its stored answer of `bytes` bytes is read. May reject to refuse the request. Absent: every
   * repeat is admitted.
   */
  reserve?: (bytes: number) => Promise<void>;
  /** Does the work. The signal aborts when the last waiting client has disconnected. */
  work: (signal: AbortSignal) => Promise<StoredAnswer>;
}

/** A request whose answer is pending: its work runs on this or another node, or its stored answer is being read. */
interface PendingAnswer {
  requestHash: string;
  /** Number of clients that wait for the answer. */
  waiting: number;
  /** True once the last client has disconnected, so that the work was cancelled. */
  stopped: boolean;
  /** True once there is an answer, or there can be none. */
  settled: boolean;
  controller: AbortController;
  /** Resolves to `undefined` if the work ended without an answer. A waiting client may start it again then. */
  answer: Promise<StoredAnswer | undefined>;
}

/** Result of a lookup: a stored answer, this node's claim, or the hash of the request that another node has claimed. */
type LookupResult = { answer: AnswerRecord } | { claim: HeldClaim } | { otherHash: string };

/** Gets an answer. The signal aborts when no client waits for it any more; `undefined`: there is none. */
type AnswerMaker = (signal: AbortSignal) => Promise<StoredAnswer | undefined>;

const MAX_WAITING = 32;
const MAX_ANSWERS = 20_000;

/** Larger answers would delay other requests: SQLite takes about 4 ms per MiB. */
const MAX_ANSWER_BYTES = 32 * 1024 * 1024;

const WAIT_MS = 15 * 60_000;
const LEASE_MS = 30_000;

/** First interval between polls for another node's answer, in milliseconds. It doubles after each poll. */
const FIRST_POLL_MS = 100;
/** Longest interval between polls, in milliseconds. */
const MAX_POLL_MS = 1_000;

/** `retry-after` of a repeat that cannot wait, in milliseconds. */
const RETRY_MS = 5_000;

/** Answers requests with an idempotency key. */
export class Idempotency {
  readonly #maxWaiting: number;
  readonly #waitMs: number;
  readonly #leaseMs: number;
  readonly #monotonic: () => number;
  readonly #later: StartTimer;
  readonly #answers: AnswerStore;
  readonly #isCharged: (requestId: string) => Promise<boolean>;
  readonly #cache: ReplayCache;
  readonly #recorder: AnswerRecorder;
  /** Pending answers by scope and key. There is one entry per key, so that no work is done twice at the same time. */
  readonly #pending = new Map<string, PendingAnswer>();
  /** Lookups in progress, by scope and key. Concurrent repeats wait for them. */
  readonly #lookups = new Map<string, Promise<void>>();

  constructor(parts: IdempotencyParts) {
    this.#maxWaiting = parts.maxWaiting ?? MAX_WAITING;
    this.#waitMs = parts.waitMs ?? WAIT_MS;
    this.#leaseMs = parts.leaseMs ?? LEASE_MS;
    this.#monotonic = parts.monotonic ?? (() => performance.now());
    this.#later = parts.later ?? startTimer;
    this.#answers = parts.store.answers;
    this.#isCharged = parts.isCharged ?? (() => Promise.resolve(false));
    this.#cache = createReplayCache({
      answers: this.#answers,
      now: parts.now,
      windowMs: parts.windowMs,
      maxBytes: parts.maxBytes,
      maxAnswerBytes: parts.maxAnswerBytes ?? Math.min(MAX_ANSWER_BYTES, Math.floor(parts.maxBytes / 4)),
      maxAnswers: parts.maxAnswers ?? MAX_ANSWERS,
    });
    this.#recorder = new AnswerRecorder({
      cache: this.#cache,
      windowMs: parts.windowMs,
      later: this.#later,
      report: parts.report,
    });
  }

  /**
   * Answers a request with the result of its work, or with the stored answer and `x-sluice-idempotent-replay: true`.
   * Answers with status 429 or 5xx, and errors of the work, are sent to all waiting clients, but are not stored.
   * @throws {GatewayError} `invalid` if the key was used for another request or the answer's body is not stored;
   * `limited` if too many clients wait or the wait is too long; `overloaded` if the store does not answer; errors of
   * the work; the signal's reason after an abort
   */
  async run(request: RepeatableRequest): Promise<StoredAnswer> {
    const { requestHash, signal } = request;
    const name = JSON.stringify([request.scope, request.key]);
    while (true) {
      signal.throwIfAborted();
      const current = this.#pending.get(name);
      const lookup = this.#lookups.get(name);
      let answer: StoredAnswer | undefined;
      if (current !== undefined) {
        if (current.requestHash !== requestHash) throw otherRequest();
        answer = await this.#join(current, signal);
      } else if (lookup !== undefined) {
        await abortable(lookup, signal);
      } else {
        answer = await this.#startOrReplay(name, request);
      }
      if (answer !== undefined) return answer;
    }
  }

  /** Deletes expired and excess answers. Should be called periodically. */
  sweep(): Promise<void> {
    return this.#cache.prune();
  }

  /** Cancels all work. Resolves after a last attempt to store each answer that is not stored yet. */
  async close(): Promise<void> {
    for (const { controller } of this.#pending.values()) controller.abort(new DOMException("Closed", "AbortError"));
    await this.#recorder.close();
  }

  /** Begins to get an answer, which further requests with the key wait for. */
  #addPending(name: string, requestHash: string, make: AnswerMaker): PendingAnswer {
    const controller = new AbortController();
    const entry: PendingAnswer = {
      requestHash,
      waiting: 0,
      stopped: false,
      settled: false,
      controller,
      // The work starts one microtask later, so that the entry exists before the work can end.
      answer: Promise.resolve().then(() => make(controller.signal)).finally(() => {
        entry.settled = true;
        this.#pending.delete(name);
      }),
    };
    // If no client waits any more, a rejection must still be handled.
    entry.answer.catch(() => {});
    this.#pending.set(name, entry);
    return entry;
  }

  /** Waits for an answer until this client's signal aborts, at most `maxMs`. */
  async #wait(entry: PendingAnswer, signal: AbortSignal, maxMs?: number): Promise<StoredAnswer | undefined> {
    entry.waiting++;
    try {
      return await waitForAnswer(entry.answer, signal, maxMs);
    } finally {
      if (--entry.waiting === 0 && !entry.settled) {
        entry.stopped = true;
        entry.controller.abort(signal.reason);
      }
    }
  }

  /** Waits for work that another client started. @returns `undefined` if it was cancelled without an answer */
  async #join(entry: PendingAnswer, signal: AbortSignal): Promise<StoredAnswer | undefined> {
    if (entry.waiting > this.#maxWaiting) throw stillRunning();
    const wasStopped = entry.stopped;
    try {
      const answer = await this.#wait(entry, signal, this.#waitMs);
      return answer === undefined || wasStopped && !isFinal(answer) ? undefined : markReplay(answer);
    } catch (error) {
      if (!wasStopped || !entry.settled) throw error;
      signal.throwIfAborted();
      return undefined;
    }
  }

  /** Looks for a stored answer. If there is none, claims the request for this node. */
  async #find(
    { scope, key, requestHash, requestId, signal, reserve }: RepeatableRequest,
  ): Promise<LookupResult> {
    const answer = await callStore(() => this.#cache.find(scope, key, reserve));
    signal.throwIfAborted();
    if (answer !== undefined) return { answer };
    const claim = await this.#claim({ scope, key, requestHash, holder: requestId ?? crypto.randomUUID() });
    if ("requestHash" in claim) return { otherHash: claim.requestHash };
    try {
      // Another node may have stored an answer between the lookup and the claim.
      const newAnswer = await callStore(() => this.#cache.find(scope, key, reserve));
      if (newAnswer === undefined) return { claim };
      await claim.release();
      return { answer: newAnswer };
    } catch (error) {
      void claim.release();
      throw error;
    }
  }

  /**
   * Claims a request. The expired claim of a dead node is taken over. If the dead node had already charged the request,
   * the request is first recorded as done without an answer.
   */
  async #claim(claim: AnswerClaim): Promise<HeldClaim | OtherClaim> {
    const { scope, key } = claim;
    const isAnswered = async () => await this.#cache.find(scope, key) !== undefined;
    const parts = {
      answers: this.#answers,
      isAnswered,
      leaseMs: this.#leaseMs,
      monotonic: this.#monotonic,
      later: this.#later,
    };
    const other = await callStore(() => claimRequest(claim, parts));
    if (!("requestHash" in other) || !other.isOver) return other;
    const { requestHash, holder } = other;
    if (await callStore(() => this.#isCharged(holder))) {
      await callStore(() => this.#cache.markDone({ scope, key, requestHash, holder }));
    }
    return await callStore(() => claimRequest(claim, parts, holder));
  }

  /** Does the work under a claim, and releases the claim once the answer is stored. */
  async #workUnderClaim(request: RepeatableRequest, { claim, stop }: { claim: HeldClaim; stop: AbortSignal }) {
    try {
      const answer = await request.work(AbortSignal.any([stop, claim.lost]));
      await this.#recorder.store(claim, answer);
      return answer;
    } catch (error) {
      await this.#endFailed(request, claim);
      throw error;
    }
  }

  /** Releases the claim of a failed request. If the request was charged, it is recorded as done without an answer. */
  async #endFailed(request: RepeatableRequest, claim: HeldClaim): Promise<void> {
    const { requestId } = request;
    const isDone = requestId !== undefined && await this.#isCharged(requestId).catch(() => false);
    if (isDone) void this.#recorder.markDone(claim);
    else await claim.release();
  }

  /**
   * Waits until another node releases its claim. Then a client that still waits looks for the answer, because reading
   * it needs the admission of a request that has not ended.
   */
  async #awaitOtherNode({ scope, key }: RepeatableRequest, stop: AbortSignal): Promise<undefined> {
    for (let ms = FIRST_POLL_MS;; ms = Math.min(MAX_POLL_MS, ms * 2)) {
      await delay(ms, stop, this.#later);
      if (!await callStore(() => this.#answers.isClaimed(scope, key))) return undefined;
    }
  }

  /** Chooses how to get the answer: do the work, wait for another node, or read a stored answer. */
  #makerFor(result: LookupResult, request: RepeatableRequest): AnswerMaker {
    if ("claim" in result) return (stop) => this.#workUnderClaim(request, { claim: result.claim, stop });
    const hash = "answer" in result ? result.answer.requestHash : result.otherHash;
    if (hash !== request.requestHash) throw otherRequest();
    if ("otherHash" in result) return (stop) => this.#awaitOtherNode(request, stop);
    return () => Promise.resolve(markReplay(storedAnswer(result.answer)));
  }

  /**
   * Runs the work, waits for the node that runs it, or reads the stored answer. At every moment, other requests with
   * the key find an entry in `#lookups` or `#pending`.
   * @returns `undefined` if another node has done the work, or given it up
   */
  async #startOrReplay(name: string, request: RepeatableRequest): Promise<StoredAnswer | undefined> {
    const { requestHash, signal } = request;
    const lookupDone = Promise.withResolvers<void>();
    this.#lookups.set(name, lookupDone.promise);
    let answer: Promise<StoredAnswer | undefined>;
    const lookup = this.#find(request);
    try {
      const result = await abortable(lookup, signal);
      signal.throwIfAborted();
      answer = this.#wait(
        this.#addPending(name, requestHash, this.#makerFor(result, request)),
        signal,
        "otherHash" in result ? this.#waitMs : undefined,
      );
    } catch (error) {
      void lookup.then((result) => "claim" in result ? result.claim.release() : undefined, () => {});
      throw error;
    } finally {
      this.#lookups.delete(name);
      lookupDone.resolve();
    }
    return await answer;
  }
}

/** Calls the store. @throws {GatewayError} `overloaded` if the store fails; any other `GatewayError` of the call */
async function callStore<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (cause) {
    if (cause instanceof GatewayError) throw cause;
    throw new GatewayError(
      "overloaded",
      "Cannot look for the answer to this Idempotency-Key: the store does not answer",
      { retryAfterMs: RETRY_MS, cause },
    );
  }
}

/**
 * Waits until the promise settles or the client disconnects, at most `maxMs`.
 * @throws {GatewayError} `limited`; the signal's reason once it aborts
 */
async function waitForAnswer<T>(promise: Promise<T>, signal: AbortSignal, maxMs?: number): Promise<T> {
  if (maxMs === undefined) return await abortable(promise, signal);
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(stillRunning()), maxMs);
  try {
    return await abortable(Promise.race([promise, late.promise]), signal);
  } finally {
    clearTimeout(timer);
  }
}

function markReplay(answer: StoredAnswer): StoredAnswer {
  return { ...answer, headers: { ...answer.headers, "x-sluice-idempotent-replay": "true" } };
}

function otherRequest(): GatewayError {
  return new GatewayError(
    "invalid",
    "Cannot use this Idempotency-Key: it was used for another request; use a new key",
    { code: "idempotency_key_reused" },
  );
}

function stillRunning(): GatewayError {
  return new GatewayError("limited", "The first request with this Idempotency-Key is still running", {
    retryAfterMs: RETRY_MS,
  });
}
