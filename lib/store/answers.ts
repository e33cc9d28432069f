/** The store of finished answers, which repeated requests with the same Idempotency-Key get again. */

/** A stored answer. */
export interface AnswerRecord {
  /** The caller and the endpoint, within which keys are unique. */
  scope: string;
  /** The client's key of the request. */
  key: string;
  /** SHA-256 of the request, hexadecimal. */
  requestHash: string;
  /** HTTP status. */
  status: number;
  headers: Readonly<Record<string, string>>;
  /** Absent if the body is not stored, because it was too large, or was dropped to make room for newer ones. */
  body?: Uint8Array<ArrayBuffer>;
  /** When the answer was finished, Unix time in milliseconds. */
  doneAt: number;
}

/** Bounds of the stored answers. */
export interface AnswerBounds {
  /** Answers finished before this time are deleted; Unix time in milliseconds. */
  until: number;
  /** Maximum number of bytes of all bodies. The oldest of the scope with the most bytes are deleted first. */
  maxBytes: number;
  /** Maximum number of answers. The oldest of the scope with the most answers are deleted first. */
  maxAnswers: number;
}

/** A claim on a request in progress, so that no repetition of it runs at the same time. */
export interface AnswerClaim extends Pick<AnswerRecord, "scope" | "key" | "requestHash"> {
  /** Unique id of this execution, on any node. */
  holder: string;
}

/** A claim that another holder has. */
export interface OtherClaim extends Pick<AnswerClaim, "requestHash" | "holder"> {
  /** True if its lease is over: the node crashed or lost the store before it released the claim. */
  isOver: boolean;
}

/** A row of `answers` without its body, with integers as the database returns them. */
export interface AnswerRow {
  scope: string;
  key: string;
  request_hash: string;
  status: number;
  headers: string;
  done_at: number | bigint;
  /** Size of the body; `null` if it is not stored. */
  body_bytes: number | bigint | null;
}

/**
 * Called with the size of a body in bytes, and the Unix time in milliseconds when its answer was finished. It may throw
 * to refuse the request.
 */
export type ReserveAnswer = (bytes: number, doneAt: number) => Promise<void> | undefined;

/**
 * Converts a row to an answer.
 * @param readBody reads the body; null or undefined if it was dropped meanwhile
 */
export async function toAnswerRecord(
  { request_hash, done_at, headers, body_bytes: bytes, ...facts }: AnswerRow,
  readBody: () => Promise<Uint8Array<ArrayBuffer> | null | undefined>,
  reserve?: ReserveAnswer,
): Promise<AnswerRecord> {
  const record = { ...facts, requestHash: request_hash, headers: JSON.parse(headers), doneAt: Number(done_at) };
  if (bytes === null) return record;
  await reserve?.(Number(bytes), record.doneAt);
  const body = await readBody();
  return body ? { ...record, body } : record;
}

/** Stores answers and claims. */
export interface AnswerStore {
  /**
   * Finds the answer to a request. The caller may change its body.
   * @param reserve called before the body is read; an error that it throws is passed on
   */
  find(scope: string, key: string, reserve?: ReserveAnswer): Promise<AnswerRecord | undefined>;
  /**
   * Stores or replaces an answer, unless the request is not claimed by `holder`, whose work another node has taken over
   * then. Leaves out the body if the total would exceed `maxBytes`.
   */
  put(answer: AnswerRecord, options: Pick<AnswerBounds, "maxBytes"> & Pick<AnswerClaim, "holder">): Promise<void>;
  /**
   * Claims a request for one holder among all nodes, or renews the holder's own claim.
   * @param forMs length of the lease, in milliseconds
   * @param after a former holder with a known outcome, whose claim may be taken over if its lease has expired
   * @returns the claim of another holder; `undefined` if the claim succeeded
   */
  claim(claim: AnswerClaim, forMs: number, after?: string): Promise<OtherClaim | undefined>;
  isClaimed(scope: string, key: string): Promise<boolean>;
  /** Releases the claim if it is still this holder's. */
  release(claim: Pick<AnswerClaim, "scope" | "key" | "holder">): Promise<void>;
  /** Deletes a few answers and bodies that exceed the bounds. Returns true if more remain. */
  prune(bounds: AnswerBounds): Promise<boolean>;
}
