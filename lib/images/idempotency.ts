/**
 * `Idempotency-Key`: a request that comes again is answered again, not done again. Answers are kept in the store. Of
 * requests that run, only this process knows: two processes on one store may do the same request at the same time.
 */
import { GatewayError } from "../errors.ts";
import type { AnswerStore } from "../store/answers.ts";
import { createAnswerShelf, isFinal, type StoredAnswer } from "./answer_shelf.ts";

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
}

/** What it is made of. */
export interface IdempotencyParts extends IdempotencyLimits {
  store: { readonly answers: AnswerStore };
  /** Unix time in milliseconds. */
  now: () => number;
  /** Told of an answer that could not be kept; its request is answered all the same. */
  report: (cause: unknown) => void;
}

/** A request that may come again. */
export interface RepeatableRequest {
  /** Whose it is and of which endpoint. */
  scope: string;
  /** The client's name for it, as `readIdempotencyKey` gives it. */
  key: string;
  /** SHA-256 of what it asks for, hexadecimal. */
  requestHash: string;
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
   * `limited` where too many wait or it takes too long; whatever the work throws; the signal's reason once it aborts
   */
  run(request: RepeatableRequest): Promise<StoredAnswer>;
  /** Forgets what is too old or too much. To be called from time to time. */
  sweep(): Promise<void>;
  /** Cancels all work. */
  close(): void;
}

/** Work that runs, or an answer that is being read. */
interface Running {
  requestHash: string;
  /** Clients that want its answer. */
  waiting: number;
  /** Whether all of them have gone, so that it was told to stop. */
  stopped: boolean;
  /** Whether the answer is there, or will never be. */
  settled: boolean;
  controller: AbortController;
  answer: Promise<StoredAnswer>;
}

const MAX_WAITING = 32;
const MAX_ANSWERS = 20_000;
const WAIT_MS = 15 * 60_000;

/** When a repeat that could not wait may come again, in milliseconds. */
const RETRY_MS = 5_000;

/** Starts with what the store holds. */
export function createIdempotency(parts: IdempotencyParts): Idempotency {
  const { maxWaiting = MAX_WAITING, waitMs = WAIT_MS } = parts;
  const shelf = createAnswerShelf({
    answers: parts.store.answers,
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

  function start(name: string, requestHash: string, make: (signal: AbortSignal) => Promise<StoredAnswer>): Running {
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
  async function wait(entry: Running, signal: AbortSignal, longestMs?: number): Promise<StoredAnswer> {
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
      return wasStopped && !isFinal(answer) ? undefined : replay(answer);
    } catch (error) {
      if (wasStopped && entry.settled && !signal.aborted) return undefined;
      throw error;
    }
  }

  /** Does the work, or reads the answer that it gave before. Others find `looking` or `running` at every moment. */
  async function first(name: string, request: RepeatableRequest): Promise<StoredAnswer> {
    const { scope, key, requestHash, signal, work } = request;
    const looked = Promise.withResolvers<void>();
    looking.set(name, looked.promise);
    let answer: Promise<StoredAnswer>;
    try {
      const found = await whileThere(shelf.find(scope, key), signal);
      signal.throwIfAborted();
      if (found === undefined) {
        const doing = start(name, requestHash, async (stop) => {
          const answer = await work(stop);
          await shelf.keep({ scope, key, requestHash }, answer);
          return answer;
        });
        answer = wait(doing, signal);
      } else {
        if (found.requestHash !== requestHash) throw otherRequest();
        answer = wait(start(name, requestHash, () => shelf.read(found)), signal).then(replay);
      }
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
        if (current !== undefined) {
          if (current.requestHash !== requestHash) throw otherRequest();
          const answer = await join(current, signal);
          if (answer !== undefined) return answer;
        } else if (look !== undefined) {
          await whileThere(look, signal);
        } else {
          return await first(name, request);
        }
      }
    },
    sweep: () => shelf.sweep(),
    close() {
      for (const { controller } of running.values()) controller.abort(new DOMException("Closed", "AbortError"));
    },
  };
}

/**
 * Waits as long as a client does, at most `longestMs`.
 * @throws {GatewayError} `limited`; the signal's reason once it aborts
 */
async function whileThere<T>(promise: Promise<T>, signal: AbortSignal, longestMs?: number): Promise<T> {
  const gone = Promise.withResolvers<never>();
  const leave = () => gone.reject(signal.reason);
  signal.addEventListener("abort", leave, { once: true });
  const timer = longestMs === undefined ? undefined : setTimeout(() => gone.reject(stillRunning()), longestMs);
  try {
    signal.throwIfAborted();
    return await Promise.race([promise, gone.promise]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", leave);
  }
}

/** Among the visible characters and the space, as in a header. */
const KEY = /^[ -~]{1,255}$/;

/**
 * The client's name for a request; `undefined` where it gives none. A stream cannot be given again, so that a key is
 * refused there rather than ignored.
 * @throws {GatewayError} `invalid`
 */
export function readIdempotencyKey(headers: Headers, { stream }: { stream: boolean }): string | undefined {
  const key = headers.get("idempotency-key");
  if (key === null) return undefined;
  if (!KEY.test(key)) {
    throw new GatewayError("invalid", "Cannot use this Idempotency-Key: expected 1 to 255 printable ASCII characters");
  }
  if (stream) {
    throw new GatewayError("invalid", "Cannot use an Idempotency-Key with stream: leave one of them out", {
      param: "stream",
    });
  }
  return key;
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
