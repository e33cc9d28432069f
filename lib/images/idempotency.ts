/**
 * `Idempotency-Key`: a request that comes again is answered again, not done again. Answers are kept in the store, which
 * also knows who does a request: of all nodes one, as long as it lives. Repeats on its own node wait for it and get what
 * comes of it, a failure too; those on other nodes look for its answer from time to time, and after a failure, which is
 * not kept, one of them does the work anew.
 */
import { GatewayError } from "../errors.ts";
import type { Later } from "../billing/entry_queue.ts";
import { withTimeout } from "../billing/ledger.ts";
import { whileWanted } from "../stop.ts";
import type { AnswerClaim, AnswerRecord, AnswerStore, OtherClaim } from "../store/answers.ts";
import { createAnswerShelf, type FoundAnswer, isFinal, type StoredAnswer } from "./answer_shelf.ts";
import { claimRequest, type HeldClaim } from "./idempotency_claim.ts";

/** What repeats may cost. */
export interface IdempotencyLimits {
  /** How long an answer is kept after it is done, in milliseconds. */
  windowMs: number;
  /** Bytes of all answers kept. */
  maxBytes: number;
  /** Bytes of one answer; a larger one is known to have been given, but not kept. Absent: a quarter of all. */
  maxAnswerBytes?: number;
  /** Answers known of, kept or not. Absent: 20,000. */
  maxAnswers?: number;
  /** Repeats that may wait for one request. Absent: 32. */
  maxWaiting?: number;
  /** Longest wait for the first request, in milliseconds. Absent: 15 minutes. */
  waitMs?: number;
  /** How long a request that is done here is left to this process after its end, in milliseconds. Absent: 30 seconds. */
  leaseMs?: number;
}

/** What it is made of. */
export interface IdempotencyParts extends IdempotencyLimits {
  store: { readonly answers: AnswerStore };
  /** Unix time in milliseconds. */
  now: () => number;
  /** Whether a request was charged, by its id; absent: nobody knows. */
  isCharged?: (requestId: string) => Promise<boolean>;
  /** Told of an answer that could not be kept; its request is answered all the same. */
  report: (cause: unknown) => void;
  /** Milliseconds that only grow; absent: since the process began. */
  monotonic?: () => number;
  /** Absent: the timers of the process. */
  later?: Later;
}

/** A request that may come again. */
export interface RepeatableRequest {
  /** Whose it is and of which endpoint. */
  scope: string;
  /** The client's name for it, as the header gives it. */
  key: string;
  /** SHA-256 of what it asks for, hexadecimal. */
  requestHash: string;
  /** The gateway's id of the request, which it is charged under; absent: it is not charged. */
  requestId?: string;
  /** Aborted when this client has gone. */
  signal: AbortSignal;
  /** Does it. The signal aborts when nobody waits any more. */
  work: (signal: AbortSignal) => Promise<StoredAnswer>;
}

/** Requests with a key. */
export interface Idempotency {
  /**
   * Answers a request: by its work, or as it was answered before, then with `x-sluice-idempotent-replay: true`. Answers
   * of status 429 and 500 and above are given to all who wait and not kept; so is what the work throws.
   * @throws {GatewayError} `invalid` where the key was used for another request or its answer has not been kept,
   * `limited` where too many wait or it takes too long, `overloaded` where the store does not answer; whatever the work
   * throws; the signal's reason once it aborts
   */
  run(request: RepeatableRequest): Promise<StoredAnswer>;
  /** Forgets what is too old or too much. To be called from time to time. */
  sweep(): Promise<void>;
  /** Cancels all work. */
  close(): void;
}

/** Work that runs here or elsewhere, or an answer that is being read. */
interface Running {
  requestHash: string;
  /** Clients that want its answer. */
  waiting: number;
  /** Whether all of them have gone, so that it was told to stop. */
  stopped: boolean;
  /** Whether the answer is there, or will never be. */
  settled: boolean;
  controller: AbortController;
  /** `undefined` where nothing came of it, so that whoever waits may do it. */
  answer: Promise<StoredAnswer | undefined>;
}

/** What a look for an answer finds: the answer, or who is to make it. */
type Found = { answer: FoundAnswer } | { claim: HeldClaim } | { otherHash: string };

/** What a part of the work makes of a request. */
type Make = (signal: AbortSignal) => Promise<StoredAnswer | undefined>;

const MAX_WAITING = 32;
const MAX_ANSWERS = 20_000;
const WAIT_MS = 15 * 60_000;
const LEASE_MS = 30_000;

/** Time between two looks for what another node does, in milliseconds: at first, and at most. */
const FIRST_LOOK_MS = 100;
const LONGEST_LOOK_MS = 1_000;

/** Time between two tries to note that a request was done, in milliseconds. */
const NOTE_MS = 1_000;

/** When a repeat that could not wait may come again, in milliseconds. */
const RETRY_MS = 5_000;

/** Starts with what the store holds. */
export function createIdempotency(parts: IdempotencyParts): Idempotency {
  const { maxWaiting = MAX_WAITING, waitMs = WAIT_MS, leaseMs = LEASE_MS } = parts;
  const { monotonic = () => performance.now(), later = withTimeout, store: { answers } } = parts;
  const { isCharged = () => Promise.resolve(false) } = parts;
  const shelf = createAnswerShelf({
    answers,
    now: parts.now,
    report: parts.report,
    windowMs: parts.windowMs,
    maxBytes: parts.maxBytes,
    maxAnswerBytes: parts.maxAnswerBytes ?? Math.floor(parts.maxBytes / 4),
    maxAnswers: parts.maxAnswers ?? MAX_ANSWERS,
  });
  /** By scope and key. One entry at a time: nothing is done twice at once. */
  const running = new Map<string, Running>();
  /** By scope and key: answers that are being looked for. Whoever comes meanwhile waits for what comes of it. */
  const looking = new Map<string, Promise<void>>();
  const closing = new AbortController();

  function start(name: string, requestHash: string, make: Make): Running {
    const controller = new AbortController();
    const entry: Running = {
      requestHash,
      waiting: 0,
      stopped: false,
      settled: false,
      controller,
      // Begun in a later microtask: whatever happens, the entry is there first.
      answer: Promise.resolve().then(() => make(controller.signal)).finally(() => {
        entry.settled = true;
        running.delete(name);
      }),
    };
    // Everybody who waited may have gone.
    entry.answer.catch(() => {});
    running.set(name, entry);
    return entry;
  }

  /** Waits for an answer as long as this client does, at most `longestMs`. */
  async function wait(entry: Running, signal: AbortSignal, longestMs?: number): Promise<StoredAnswer | undefined> {
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

  /** Waits for what another client has begun; `undefined` where that was stopped before it came to anything. */
  async function join(entry: Running, signal: AbortSignal): Promise<StoredAnswer | undefined> {
    if (entry.waiting > maxWaiting) throw stillRunning();
    const wasStopped = entry.stopped;
    try {
      const answer = await wait(entry, signal, waitMs);
      return answer === undefined || wasStopped && !isFinal(answer) ? undefined : replay(answer);
    } catch (error) {
      if (!wasStopped || !entry.settled) throw error;
      signal.throwIfAborted();
      return undefined;
    }
  }

  /** Looks for an answer, and takes the request for this process where there is none and nobody else makes it. */
  async function look({ scope, key, requestHash, requestId, signal }: RepeatableRequest): Promise<Found> {
    const answer = await asked(() => shelf.find(scope, key));
    signal.throwIfAborted();
    if (answer !== undefined) return { answer };
    const claim = await take({ scope, key, requestHash, holder: requestId ?? crypto.randomUUID() });
    if ("requestHash" in claim) return { otherHash: claim.requestHash };
    try {
      // It may have been answered between the two.
      const late = await asked(() => shelf.find(scope, key));
      if (late === undefined) return { claim };
      await claim.release();
      return { answer: late };
    } catch (error) {
      void claim.release();
      throw error;
    }
  }

  /** Claims a request, also from a node that died: what it had charged was done, though nobody has the answer. */
  async function take(claim: AnswerClaim): Promise<HeldClaim | OtherClaim> {
    const { scope, key } = claim;
    const isAnswered = async () => await shelf.find(scope, key) !== undefined;
    const parts = { answers, isAnswered, leaseMs, monotonic, later };
    const other = await asked(() => claimRequest(claim, parts));
    if (!("requestHash" in other) || !other.isOver) return other;
    if (await asked(() => isCharged(other.holder))) {
      await asked(() => shelf.note(doneOf({ scope, key, requestHash: other.requestHash })));
    }
    return await asked(() => claimRequest(claim, parts, other.holder));
  }

  /** Does the work, under a claim that ends when everybody can know of the answer. */
  async function make(request: RepeatableRequest, { claim, stop }: { claim: HeldClaim; stop: AbortSignal }) {
    try {
      const answer = await request.work(AbortSignal.any([stop, claim.lost]));
      const unnoted = await shelf.keep(request, answer);
      if (unnoted === undefined) await claim.release();
      else void note(unnoted, claim);
      return answer;
    } catch (error) {
      await settle(request, claim);
      throw error;
    }
  }

  /** Lets a request go that came to nothing; one that was charged was done, though nobody has the answer. */
  async function settle(request: RepeatableRequest, claim: HeldClaim): Promise<void> {
    const { requestId } = request;
    const isDone = requestId !== undefined && await isCharged(requestId).catch(() => false);
    if (isDone) void note(doneOf(request), claim);
    else await claim.release();
  }

  /** Tries on to note that a request was done. Until then it stays claimed: it must not be done, and charged, again. */
  async function note(record: AnswerRecord, claim: HeldClaim): Promise<void> {
    for (let left = parts.windowMs; left > 0 && !closing.signal.aborted; left -= NOTE_MS) {
      try {
        await shelf.note(record);
        return await claim.release();
      } catch {
        await pause(NOTE_MS, closing.signal).catch(() => {});
      }
    }
    claim.leave();
  }

  /** Waits for what another node does; `undefined` where nothing has come of it. */
  async function elsewhere({ scope, key, requestHash }: RepeatableRequest, stop: AbortSignal) {
    for (let ms = FIRST_LOOK_MS;; ms = Math.min(LONGEST_LOOK_MS, ms * 2)) {
      await pause(ms, stop);
      const found = await asked(() => shelf.find(scope, key));
      if (found !== undefined) {
        if (found.requestHash !== requestHash) throw otherRequest();
        return replay(await asked(() => shelf.read(found)));
      }
      if (!await asked(() => answers.isClaimed(scope, key))) return undefined;
    }
  }

  function pause(ms: number, signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
    const cancel = later(resolve, ms);
    return promise.finally(() => {
      cancel();
      signal.removeEventListener("abort", stop);
    });
  }

  /** What begins where nothing runs here: the work, a wait for another node, or the reading of an answer. */
  function begin(found: Found, request: RepeatableRequest): Make {
    if ("claim" in found) return (stop) => make(request, { claim: found.claim, stop });
    const hash = "answer" in found ? found.answer.requestHash : found.otherHash;
    if (hash !== request.requestHash) throw otherRequest();
    if ("otherHash" in found) return (stop) => elsewhere(request, stop);
    return async () => replay(await asked(() => shelf.read(found.answer)));
  }

  /**
   * Does the work, waits for the node that does it, or reads the answer that was given before; `undefined` where nothing
   * has come of what another node did. Others find `looking` or `running` at every moment.
   */
  async function first(name: string, request: RepeatableRequest): Promise<StoredAnswer | undefined> {
    const { requestHash, signal } = request;
    const looked = Promise.withResolvers<void>();
    looking.set(name, looked.promise);
    let answer: Promise<StoredAnswer | undefined>;
    const found = look(request);
    try {
      const what = await whileWanted(found, signal);
      signal.throwIfAborted();
      answer = wait(start(name, requestHash, begin(what, request)), signal, "otherHash" in what ? waitMs : undefined);
    } catch (error) {
      void found.then((what) => "claim" in what ? what.claim.release() : undefined, () => {});
      throw error;
    } finally {
      looking.delete(name);
      looked.resolve();
    }
    return await answer;
  }

  return {
    async run(request) {
      const { requestHash, signal } = request;
      const name = JSON.stringify([request.scope, request.key]);
      while (true) {
        signal.throwIfAborted();
        const current = running.get(name);
        const look = looking.get(name);
        let answer: StoredAnswer | undefined;
        if (current !== undefined) {
          if (current.requestHash !== requestHash) throw otherRequest();
          answer = await join(current, signal);
        } else if (look !== undefined) {
          await whileWanted(look, signal);
        } else {
          answer = await first(name, request);
        }
        if (answer !== undefined) return answer;
      }
    },
    sweep: () => shelf.sweep(),
    close() {
      closing.abort(new DOMException("Closed", "AbortError"));
      for (const { controller } of running.values()) controller.abort(closing.signal.reason);
    },
  };
}

/** Asks the store. @throws {GatewayError} `overloaded` where it does not answer, or what the call itself throws as one */
async function asked<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (cause) {
    if (cause instanceof GatewayError) throw cause;
    throw new GatewayError(
      "overloaded",
      "Cannot look for the answer to this Idempotency-Key: the store does not answer",
      {
        retryAfterMs: RETRY_MS,
        cause,
      },
    );
  }
}

/**
 * Waits as long as a client does, at most `longestMs`.
 * @throws {GatewayError} `limited`; the signal's reason once it aborts
 */
async function whileThere<T>(promise: Promise<T>, signal: AbortSignal, longestMs?: number): Promise<T> {
  if (longestMs === undefined) return await whileWanted(promise, signal);
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(stillRunning()), longestMs);
  try {
    return await whileWanted(Promise.race([promise, late.promise]), signal);
  } finally {
    clearTimeout(timer);
  }
}

/** What is known of a request that was done, without its answer. */
function doneOf({ scope, key, requestHash }: Pick<AnswerRecord, "scope" | "key" | "requestHash">): AnswerRecord {
  return { scope, key, requestHash, status: 200, headers: {}, bytes: 0, kept: false, doneAt: 0 };
}

function replay(answer: StoredAnswer): StoredAnswer {
  return { ...answer, headers: { ...answer.headers, "x-sluice-idempotent-replay": "true" } };
}

function otherRequest(): GatewayError {
  return new GatewayError(
    "invalid",
    "Cannot use this Idempotency-Key: it was used for another request; take a new key",
    { code: "idempotency_key_reused" },
  );
}

function stillRunning(): GatewayError {
  return new GatewayError("limited", "Cannot wait for the first request with this Idempotency-Key: it still runs", {
    retryAfterMs: RETRY_MS,
  });
}
