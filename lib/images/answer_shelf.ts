/** Finished answers in the store: put there and taken out a piece at a time, within bounds of time and size. */
import { GatewayError } from "../errors.ts";
import { yieldToEventLoop } from "../scheduler.ts";
import type { AnswerRecord, AnswerStore } from "../store/answers.ts";

/** A whole answer. */
export interface StoredAnswer {
  /** HTTP status. */
  status: number;
  /** The headers worth giving again. */
  headers: Readonly<Record<string, string>>;
  /** Shared by all who get the answer: not to be changed. */
  body: Uint8Array<ArrayBuffer>;
}

/** What a shelf is made of. */
export interface ShelfParts {
  answers: AnswerStore;
  /** Unix time in milliseconds. */
  now: () => number;
  report: (cause: unknown) => void;
  windowMs: number;
  maxBytes: number;
  maxAnswerBytes: number;
  maxAnswers: number;
}

/** An answer that was found, without its body. */
export type FoundAnswer = AnswerRecord & { id: number };

/** A request that was answered. */
export type AnsweredRequest = Pick<AnswerRecord, "scope" | "key" | "requestHash">;

/** Finished answers. */
export interface AnswerShelf {
  /** The answer to a request, where it is not too old. */
  find(scope: string, key: string): Promise<FoundAnswer | undefined>;
  /** The whole of it. @throws {GatewayError} `invalid` where its body has not been kept */
  read(found: FoundAnswer): Promise<StoredAnswer>;
  /**
   * Keeps an answer if it is final, or at least notes that the request was done. Never rejects.
   * @returns what is still to be noted; `undefined` where nothing is
   */
  keep(request: AnsweredRequest, answer: StoredAnswer): Promise<AnswerRecord | undefined>;
  /** Notes that a request was done, without its answer. */
  note(record: AnswerRecord): Promise<void>;
  /** Forgets what is too old or too much. */
  sweep(): Promise<void>;
}

/** A few milliseconds of writing, with the disk. */
const PIECE_BYTES = 512 * 1024;

/** Pieces read between two turns of the event loop. */
const READS_AT_ONCE = 8;

/** Whether an answer is worth keeping. After the others, another try of the same request may fare better. */
export function isFinal({ status }: StoredAnswer): boolean {
  return status < 500 && status !== 429;
}

/** Uses what the store holds. */
export function createAnswerShelf(parts: ShelfParts): AnswerShelf {
  const { answers, now, report, windowMs, maxBytes, maxAnswerBytes, maxAnswers } = parts;

  /** Makes room for as many bytes. */
  async function makeRoom(bytes: number): Promise<void> {
    const bounds = { until: now() - windowMs, maxBytes: maxBytes - bytes, maxAnswers };
    while (await answers.prune(bounds)) await yieldToEventLoop();
  }

  async function write(record: AnswerRecord, body: Uint8Array): Promise<void> {
    const { id, kept } = await answers.begin(record, { maxBytes });
    for (let index = 0; kept && index * PIECE_BYTES < body.length; index++) {
      if (index > 0) await yieldToEventLoop();
      await answers.write(id, index, body.subarray(index * PIECE_BYTES, (index + 1) * PIECE_BYTES));
    }
    await answers.seal(id);
  }

  function note(record: AnswerRecord): Promise<void> {
    return write({ ...record, kept: false, doneAt: now() }, new Uint8Array());
  }

  return {
    async find(scope, key) {
      const found = await answers.find(scope, key);
      return found === undefined || found.doneAt <= now() - windowMs ? undefined : found;
    },
    async read({ id, status, headers, bytes, kept }) {
      if (!kept) throw notKept();
      const body = new Uint8Array(bytes);
      for (let at = 0, index = 0; at < bytes; index++) {
        if (index % READS_AT_ONCE === READS_AT_ONCE - 1) await yieldToEventLoop();
        const piece = await answers.read(id, index);
        // Others needed its place meanwhile.
        if (piece === undefined) throw notKept();
        body.set(piece, at);
        at += piece.length;
      }
      return { status, headers, body };
    },
    async keep({ scope, key, requestHash }, answer) {
      if (!isFinal(answer)) return undefined;
      const { status, headers, body } = answer;
      const record = { scope, key, requestHash, status, headers, bytes: body.length, kept: false, doneAt: now() };
      try {
        const isSmall = body.length <= maxAnswerBytes;
        await makeRoom(isSmall ? body.length : 0);
        await write({ ...record, kept: isSmall, doneAt: now() }, body);
        return undefined;
      } catch (cause) {
        report(cause);
        // That it was done must be known even where it cannot be given again.
        return await note(record).then(() => undefined, () => record);
      }
    },
    note,
    sweep: () => makeRoom(0),
  };
}

function notKept(): GatewayError {
  return new GatewayError(
    "invalid",
    "Cannot answer again: the request with this Idempotency-Key was done, but its answer has not been kept; take a new key",
    { code: "idempotent_answer_gone" },
  );
}
