/** Stores answers for repeated requests, bounded by time and size. */
import { GatewayError } from "../errors.ts";
import { yieldToEventLoop } from "../scheduler.ts";
import type { AnswerClaim, AnswerRecord, AnswerStore } from "../store/answers.ts";

/** A complete answer. */
export interface StoredAnswer {
  /** HTTP status. */
  status: number;
  /** Headers that a replay repeats. */
  headers: Readonly<Record<string, string>>;
  /** Shared by all recipients; must not be modified. */
  body: Uint8Array<ArrayBuffer>;
}

/** Dependencies and limits. */
export interface ReplayCacheParts {
  answers: AnswerStore;
  /** Unix time in milliseconds. */
  now: () => number;
  /** Lifetime of a stored answer, in milliseconds. */
  windowMs: number;
  /** Maximum number of bytes of all bodies. */
  maxBytes: number;
  /** Maximum number of bytes of one body; a larger answer is recorded without its body. */
  maxAnswerBytes: number;
  maxAnswers: number;
}

/** The stored answers. */
export interface ReplayCache {
  /**
   * Finds the answer to a request, unless it has expired.
   * @param reserve called with the size of the body in bytes before it is read; an error that it throws is passed on
   */
  find(
    scope: string,
    key: string,
    reserve?: (bytes: number) => Promise<void> | undefined,
  ): Promise<AnswerRecord | undefined>;
  /** Stores an answer if it is final and its request is still claimed. */
  store(claim: AnswerClaim, answer: StoredAnswer): Promise<void>;
  /** Records that a request was answered, without the answer, if it is still claimed. */
  markDone(claim: AnswerClaim): Promise<void>;
  /** Deletes answers that exceed the bounds. */
  prune(): Promise<void>;
}

/** Returns whether an answer is stored. After any other answer, a retry may succeed. */
export function isFinal({ status }: StoredAnswer): boolean {
  return status < 500 && status !== 429;
}

/** Returns the answer of a record. @throws {GatewayError} `invalid` if its body is not stored */
export function storedAnswer({ status, headers, body }: AnswerRecord): StoredAnswer {
  if (body !== undefined) return { status, headers, body };
  throw new GatewayError(
    "invalid",
    "Cannot answer again: the request with this Idempotency-Key was completed, but its answer was not stored; use a new key",
    { code: "idempotent_answer_gone" },
  );
}

/** Creates the cache on a store's answers. */
export function createReplayCache(parts: ReplayCacheParts): ReplayCache {
  const { answers, now, windowMs, maxBytes, maxAnswerBytes, maxAnswers } = parts;

  async function makeRoom(bytes: number): Promise<void> {
    const bounds = { until: now() - windowMs, maxBytes: maxBytes - bytes, maxAnswers };
    while (await answers.prune(bounds)) await yieldToEventLoop();
  }

  return {
    async find(scope, key, reserve) {
      const until = now() - windowMs;
      const record = await answers.find(
        scope,
        key,
        reserve && ((bytes, doneAt) => doneAt <= until ? undefined : reserve(bytes)),
      );
      return record === undefined || record.doneAt <= until ? undefined : record;
    },
    async store({ holder, ...request }, answer) {
      if (!isFinal(answer)) return;
      const { body, ...head } = answer;
      const isSmall = body.length <= maxAnswerBytes;
      await makeRoom(isSmall ? body.length : 0);
      const record = { ...request, ...head, doneAt: now() };
      await answers.put(isSmall ? { ...record, body } : record, { maxBytes, holder });
    },
    async markDone({ holder, ...request }) {
      await answers.put({ ...request, status: 200, headers: {}, doneAt: now() }, { maxBytes, holder });
    },
    prune: () => makeRoom(0),
  };
}
