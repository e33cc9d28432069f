/**
 * `Idempotency-Key`: repeats of a request get the first answer instead of doing the work again. The store keeps the
 * answers and the claim of the one node that does the work. Repeats on that node wait for it and share its result,
 * failures included. Repeats on other nodes poll the store; after a failure, which is not stored, one of them does the
 * work.
 */
import { GatewayError } from "../errors.ts";
import type { Later } from "../billing/entry_queue.ts";
import { withTimeout } from "../billing/ledger.ts";
import { abortable } from "../abort.ts";
import type { AnswerClaim, AnswerRecord, AnswerStore, OtherClaim } from "../store/answers.ts";
import { createReplayCache, isFinal, type ReplayCache, type StoredAnswer, storedAnswer } from "./replay_cache.ts";
import { claimRequest, type HeldClaim } from "./idempotency_claim.ts";

/** Limits on stored answers and waiting repeats. */
export interface IdempotencyLimits {
  /** Lifetime of a stored answer in milliseconds. */
  windowMs: number;
  /** Most bytes of all stored answers. */
  maxBytes: number;
  /**
   * Most bytes of one stored answer; a larger one is recorded as done, without its body. Default: a quarter of
   * `maxBytes`.
   */
  maxAnswerBytes?: number;
  /** Most records, with or without a body. Default: 20,000. */
  maxAnswers?: number;
  /** Repeats that may wait for one request. Default: 32. */
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
  later?: Later;
}

/** A request with an idempotency key. */
export interface RepeatableRequest {
  /** Key id and endpoint; idempotency keys are unique within a scope. */
  scope: string;
  /** The client's name for it, as the header gives it. */
  key: string;
  /** SHA-256 of the request in hexadecimal, from `hashRequest`. */
  requestHash: string;
  /** The gateway's id of the request, which it is charged under; absent: it is not charged. */
  requestId?: string;
  /** Aborted when this client has disconnected. */
  signal: AbortSignal;
  /** Does the work. The signal aborts when the last waiting client has disconnected. */
  work: (signal: AbortSignal) => Promise<StoredAnswer>;
}

/** Work that runs here or elsewhere, or an answer that is being read. */
interface Running {
  requestHash: string;
  /** Clients that wait for its answer. */
  waiting: number;
  /** True once the last client has disconnected and the work was cancelled. */
  stopped: boolean;
  /** True once the answer exists, or can no longer come. */
  settled: boolean;
  controller: AbortController;
  /** `undefined` if the work ended without an answer, so that a waiting client may start it again. */
  answer: Promise<StoredAnswer | undefined>;
}

/** Result of a lookup: a stored answer, this node's claim, or another node's request. */
type Found = { answer: AnswerRecord } | { claim: HeldClaim } | { otherHash: string };

/** Produces the answer of a request. */
type Make = (signal: AbortSignal) => Promise<StoredAnswer | undefined>;

const MAX_WAITING = 32;
const MAX_ANSWERS = 20_000;

/** Larger answers would delay other requests: SQLite takes about 4 ms per MiB. */
const MAX_ANSWER_BYTES = 32 * 1024 * 1024;

const WAIT_MS = 15 * 60_000;
const LEASE_MS = 30_000;

/** First and longest interval between polls for another node's answer, in milliseconds. */
const FIRST_POLL_MS = 100;
const LONGEST_POLL_MS = 1_000;

/** Interval of the tries to record that a request was done, in milliseconds. */
const NOTE_MS = 1_000;

/** `retry-after` of a repeat that cannot wait, in milliseconds. */
const RETRY_MS = 5_000;

/** Requests with a key, on the answers in the store. */
export class Idempotency {
  readonly #windowMs: number;
  readonly #maxWaiting: number;
  readonly #waitMs: number;
  readonly #leaseMs: number;
  readonly #monotonic: () => number;
  readonly #later: Later;
  readonly #answers: AnswerStore;
  readonly #isCharged: (requestId: string) => Promise<boolean>;
  readonly #cache: ReplayCache;
  /** By scope and key. A single entry prevents concurrent work for one key. */
  readonly #running = new Map<string, Running>();
  /** Lookups in progress, by scope and key. Concurrent repeats wait for them. */
  readonly #lookups = new Map<string, Promise<void>>();
  readonly #closing = new AbortController();

  constructor(parts: IdempotencyParts) {
    this.#windowMs = parts.windowMs;
    this.#maxWaiting = parts.maxWaiting ?? MAX_WAITING;
    this.#waitMs = parts.waitMs ?? WAIT_MS;
    this.#leaseMs = parts.leaseMs ?? LEASE_MS;
    this.#monotonic = parts.monotonic ?? (() => performance.now());
    this.#later = parts.later ?? withTimeout;
    this.#answers = parts.store.answers;
    this.#isCharged = parts.isCharged ?? (() => Promise.resolve(false));
    this.#cache = createReplayCache({
      answers: this.#answers,
      now: parts.now,
      report: parts.report,
      windowMs: parts.windowMs,
      maxBytes: parts.maxBytes,
      maxAnswerBytes: parts.maxAnswerBytes ?? Math.min(MAX_ANSWER_BYTES, Math.floor(parts.maxBytes / 4)),
      maxAnswers: parts.maxAnswers ?? MAX_ANSWERS,
    });
  }

  /**
   * Answers a request: by its work, or with the stored answer and `x-sluice-idempotent-replay: true`. Answers with
   * status 429 or 5xx, and errors of the work, reach everyone who waits but are not stored.
   * @throws {GatewayError} `invalid` if the key was used for another request or its answer is not stored, `limited` if
   * too many wait or the wait is too long, `overloaded` if the store does not answer; errors of the work; the signal's
   * reason once it aborts
   */
  async run(request: RepeatableRequest): Promise<StoredAnswer> {
    const { requestHash, signal } = request;
    const name = JSON.stringify([request.scope, request.key]);
    while (true) {
      signal.throwIfAborted();
      const current = this.#running.get(name);
      const lookup = this.#lookups.get(name);
      let answer: StoredAnswer | undefined;
      if (current !== undefined) {
        if (current.requestHash !== requestHash) throw otherRequest();
        answer = await this.#join(current, signal);
      } else if (lookup !== undefined) {
        await abortable(lookup, signal);
      } else {
        answer = await this.#first(name, request);
      }
      if (answer !== undefined) return answer;
    }
  }

  /** Deletes expired and excess answers. Call it periodically. */
  sweep(): Promise<void> {
    return this.#cache.prune();
  }

  /** Cancels all work. */
  close(): void {
    this.#closing.abort(new DOMException("Closed", "AbortError"));
    for (const { controller } of this.#running.values()) controller.abort(this.#closing.signal.reason);
  }

  #start(name: string, requestHash: string, make: Make): Running {
    const controller = new AbortController();
    const entry: Running = {
      requestHash,
      waiting: 0,
      stopped: false,
      settled: false,
      controller,
      // One microtask later, so that the entry exists before the work can end.
      answer: Promise.resolve().then(() => make(controller.signal)).finally(() => {
        entry.settled = true;
        this.#running.delete(name);
      }),
    };
    // No client may be waiting; a rejection must not be unhandled.
    entry.answer.catch(() => {});
    this.#running.set(name, entry);
    return entry;
  }

  /** Waits for an answer until this client's signal aborts, at most `longestMs`. */
  async #wait(entry: Running, signal: AbortSignal, longestMs?: number): Promise<StoredAnswer | undefined> {
    entry.waiting++;
    try {
      return await whileThere(entry.answer, signal, longestMs);
    } finally {
      if (--entry.waiting === 0 && !entry.settled) {
        entry.stopped = true;
        entry.controller.abort(signal.reason);
      }
    }
  }

  /** Waits for work started by another client; `undefined` if it was cancelled without an answer. */
  async #join(entry: Running, signal: AbortSignal): Promise<StoredAnswer | undefined> {
    if (entry.waiting > this.#maxWaiting) throw stillRunning();
    const wasStopped = entry.stopped;
    try {
      const answer = await this.#wait(entry, signal, this.#waitMs);
      return answer === undefined || wasStopped && !isFinal(answer) ? undefined : replay(answer);
    } catch (error) {
      if (!wasStopped || !entry.settled) throw error;
      signal.throwIfAborted();
      return undefined;
    }
  }

  /** Looks for a stored answer and claims the request for this node if there is none. */
  async #find({ scope, key, requestHash, requestId, signal }: RepeatableRequest): Promise<Found> {
    const answer = await callStore(() => this.#cache.find(scope, key));
    signal.throwIfAborted();
    if (answer !== undefined) return { answer };
    const claim = await this.#take({ scope, key, requestHash, holder: requestId ?? crypto.randomUUID() });
    if ("requestHash" in claim) return { otherHash: claim.requestHash };
    try {
      // Another node may have stored an answer between the lookup and the claim.
      const late = await callStore(() => this.#cache.find(scope, key));
      if (late === undefined) return { claim };
      await claim.release();
      return { answer: late };
    } catch (error) {
      void claim.release();
      throw error;
    }
  }

  /**
   * Claims a request, also from a dead node. If the dead node had charged it, the request counts as done without an
   * answer.
   */
  async #take(claim: AnswerClaim): Promise<HeldClaim | OtherClaim> {
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
    if (await callStore(() => this.#isCharged(other.holder))) {
      await callStore(() => this.#cache.markDone({ scope, key, requestHash: other.requestHash }));
    }
    return await callStore(() => claimRequest(claim, parts, other.holder));
  }

  /** Does the work under a claim, which is released once the answer is stored. */
  async #make(request: RepeatableRequest, { claim, stop }: { claim: HeldClaim; stop: AbortSignal }) {
    try {
      const answer = await request.work(AbortSignal.any([stop, claim.lost]));
      if (await this.#cache.store(request, answer)) await claim.release();
      else void this.#note(request, claim);
      return answer;
    } catch (error) {
      await this.#settle(request, claim);
      throw error;
    }
  }

  /** Releases a failed request. If it was charged, it counts as done without an answer. */
  async #settle(request: RepeatableRequest, claim: HeldClaim): Promise<void> {
    const { requestId } = request;
    const isDone = requestId !== undefined && await this.#isCharged(requestId).catch(() => false);
    if (isDone) void this.#note(request, claim);
    else await claim.release();
  }

  /**
   * Keeps trying to record that a request was done. Until then it stays claimed, so that it is not done and charged
   * again.
   */
  async #note(request: RepeatableRequest, claim: HeldClaim): Promise<void> {
    for (let left = this.#windowMs; left > 0 && !this.#closing.signal.aborted; left -= NOTE_MS) {
      try {
        await this.#cache.markDone(request);
        return await claim.release();
      } catch {
        await this.#pause(NOTE_MS, this.#closing.signal).catch(() => {});
      }
    }
    claim.stopRenewing();
  }

  /** Waits for another node's answer; `undefined` if it ended without one. */
  async #awaitOtherNode({ scope, key, requestHash }: RepeatableRequest, stop: AbortSignal) {
    for (let ms = FIRST_POLL_MS;; ms = Math.min(LONGEST_POLL_MS, ms * 2)) {
      await this.#pause(ms, stop);
      const found = await callStore(() => this.#cache.find(scope, key));
      if (found !== undefined) {
        if (found.requestHash !== requestHash) throw otherRequest();
        return replay(storedAnswer(found));
      }
      if (!await callStore(() => this.#answers.isClaimed(scope, key))) return undefined;
    }
  }

  #pause(ms: number, signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
    const cancel = this.#later(resolve, ms);
    return promise.finally(() => {
      cancel();
      signal.removeEventListener("abort", stop);
    });
  }

  /** Chooses how to get the answer: do the work, wait for another node, or read a stored answer. */
  #begin(found: Found, request: RepeatableRequest): Make {
    if ("claim" in found) return (stop) => this.#make(request, { claim: found.claim, stop });
    const hash = "answer" in found ? found.answer.requestHash : found.otherHash;
    if (hash !== request.requestHash) throw otherRequest();
    if ("otherHash" in found) return (stop) => this.#awaitOtherNode(request, stop);
    return () => Promise.resolve(replay(storedAnswer(found.answer)));
  }

  /**
   * Runs the work, waits for the node that runs it, or reads the stored answer; `undefined` if the work of another node
   * had no result. At every moment, other requests find the state `looking` or `running`.
   */
  async #first(name: string, request: RepeatableRequest): Promise<StoredAnswer | undefined> {
    const { requestHash, signal } = request;
    const done = Promise.withResolvers<void>();
    this.#lookups.set(name, done.promise);
    let answer: Promise<StoredAnswer | undefined>;
    const found = this.#find(request);
    try {
      const what = await abortable(found, signal);
      signal.throwIfAborted();
      answer = this.#wait(
        this.#start(name, requestHash, this.#begin(what, request)),
        signal,
        "otherHash" in what ? this.#waitMs : undefined,
      );
    } catch (error) {
      void found.then((what) => "claim" in what ? what.claim.release() : undefined, () => {});
      throw error;
    } finally {
      this.#lookups.delete(name);
      done.resolve();
    }
    return await answer;
  }
}

/** Calls the store. @throws {GatewayError} `overloaded` if the store fails; errors of the call itself pass */
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
 * Waits until the promise settles or the client disconnects, at most `longestMs`.
 * @throws {GatewayError} `limited`; the signal's reason once it aborts
 */
async function whileThere<T>(promise: Promise<T>, signal: AbortSignal, longestMs?: number): Promise<T> {
  if (longestMs === undefined) return await abortable(promise, signal);
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(stillRunning()), longestMs);
  try {
    return await abortable(Promise.race([promise, late.promise]), signal);
  } finally {
    clearTimeout(timer);
  }
}

function replay(answer: StoredAnswer): StoredAnswer {
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
