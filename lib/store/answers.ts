/** Finished answers, stored for a while for repeated requests. */

/** An answer. */
export interface AnswerRecord {
  /** The caller and the endpoint. */
  scope: string;
  /** The client's name for the request, unique within the scope. */
  key: string;
  /** SHA-256 of the request, hexadecimal. */
  requestHash: string;
  /** HTTP status. */
  status: number;
  headers: Readonly<Record<string, string>>;
  /** Absent if it is not stored: too large, or dropped to make room for newer ones. */
  body?: Uint8Array<ArrayBuffer>;
  /** Unix time in milliseconds. */
  doneAt: number;
}

/** Bounds of the store. */
export interface AnswerBounds {
  /** Answers finished before this time are deleted; Unix time in milliseconds. */
  until: number;
  /** Most bytes of all bodies; the bodies of the oldest answers go first. */
  maxBytes: number;
  /** Most answers; the oldest go first. */
  maxAnswers: number;
}

/** A claim on a request in progress. */
export interface AnswerClaim extends Pick<AnswerRecord, "scope" | "key" | "requestHash"> {
  /** Unique id of this execution, on any node. */
  holder: string;
}

/** The claim of another holder. */
export interface OtherClaim extends Pick<AnswerClaim, "requestHash" | "holder"> {
  /** True if its lease is over: the node crashed or lost the store before it released the claim. */
  isOver: boolean;
}

/** Stores answers, one row each. */
export interface AnswerStore {
  /** Finds the answer to a request. The body is a copy. */
  find(scope: string, key: string): Promise<AnswerRecord | undefined>;
  /** Stores or replaces an answer. Leaves out the body if the total would exceed `maxBytes`. */
  put(answer: AnswerRecord, bounds: Pick<AnswerBounds, "maxBytes">): Promise<void>;
  /**
   * Claims a request for one holder among all nodes, or renews the holder's own claim.
   * @param forMs length of the lease, in milliseconds
   * @param after a holder with an expired lease and a known outcome, whose claim may be taken over
   * @returns the claim of another holder; `undefined` if the claim succeeded
   */
  claim(claim: AnswerClaim, forMs: number, after?: string): Promise<OtherClaim | undefined>;
  /** Returns whether a request is claimed. */
  isClaimed(scope: string, key: string): Promise<boolean>;
  /** Releases the claim if it is still this holder's. */
  release(claim: Pick<AnswerClaim, "scope" | "key" | "holder">): Promise<void>;
  /** Deletes a few answers or bodies that exceed the bounds. Returns true if more remain. */
  prune(bounds: AnswerBounds): Promise<boolean>;
}
