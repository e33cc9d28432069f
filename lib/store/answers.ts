/** Finished answers, stored for a while so that a repeat of their request gets them again. */

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
  /** Absent where it is not stored: too large, or dropped to make room for newer ones. */
  body?: Uint8Array<ArrayBuffer>;
  /** Unix time in milliseconds. */
  doneAt: number;
}

/** Bounds of the store. */
export interface AnswerBounds {
  /** Answers done until then are deleted. Unix time in milliseconds. */
  until: number;
  /** Most bytes of all bodies; the bodies of the oldest answers go first. */
  maxBytes: number;
  /** Most answers; the oldest go first. */
  maxAnswers: number;
}

/** A request that is being worked on. */
export interface AnswerClaim extends Pick<AnswerRecord, "scope" | "key" | "requestHash"> {
  /** Identifies one run of the work, on any node. */
  holder: string;
}

/** The claim of another holder. */
export interface OtherClaim extends Pick<AnswerClaim, "requestHash" | "holder"> {
  /** True once its lease is over: its node died or lost the store before it released the claim. */
  isOver: boolean;
}

/** Stores answers, one row each. */
export interface AnswerStore {
  /** Finds the answer to a request. The body is the caller's own copy. */
  find(scope: string, key: string): Promise<AnswerRecord | undefined>;
  /** Stores an answer in place of an older one. Its body is left out where all bodies together would exceed `maxBytes`. */
  put(answer: AnswerRecord, bounds: Pick<AnswerBounds, "maxBytes">): Promise<void>;
  /**
   * Claims a request for one holder among all nodes, or renews the holder's own claim.
   * @param forMs length of the lease, in milliseconds
   * @param after a holder whose lease is over and whose outcome is known: the request may be taken from it
   * @returns the claim of another holder; `undefined` where the claim is this holder's
   */
  claim(claim: AnswerClaim, forMs: number, after?: string): Promise<OtherClaim | undefined>;
  /** Returns true if a request is claimed. */
  isClaimed(scope: string, key: string): Promise<boolean>;
  /** Releases a claim that is still this holder's. */
  release(claim: Pick<AnswerClaim, "scope" | "key" | "holder">): Promise<void>;
  /** Deletes a few answers or bodies that exceed the bounds. Returns true while there is more to do. */
  prune(bounds: AnswerBounds): Promise<boolean>;
}
