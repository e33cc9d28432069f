/** Finished answers, kept for a while so that a repeat of their request gets them again. */

/** What is known of an answer without its body. */
export interface AnswerRecord {
  /** Whose answer it is and of which endpoint. */
  scope: string;
  /** The client's name for the request, unique within the scope. */
  key: string;
  /** SHA-256 of the request, hexadecimal. */
  requestHash: string;
  /** HTTP status. */
  status: number;
  headers: Readonly<Record<string, string>>;
  /** Bytes of the body. */
  bytes: number;
  /** False where the body is not there: too large, or older than others that needed its place. */
  kept: boolean;
  /** Unix time in milliseconds. */
  doneAt: number;
}

/** Which answers go. */
export interface AnswerBounds {
  /** Answers done until then are forgotten. Unix time in milliseconds. */
  until: number;
  /** Bodies go, the first begun first, until no more bytes than this are kept. */
  maxBytes: number;
  /** The first begun are forgotten where there are more. */
  maxAnswers: number;
}

/** A request whose work somebody does. */
export interface AnswerClaim extends Pick<AnswerRecord, "scope" | "key" | "requestHash"> {
  /** Who does it: another name for each piece of work, whichever node does it. */
  holder: string;
}

/** The claim of somebody else. */
export interface OtherClaim extends Pick<AnswerClaim, "requestHash" | "holder"> {
  /** Whether its time is over: it was never let go, as its node died or was out of touch. */
  isOver: boolean;
}

/** Where answers are kept. No call takes longer than a few milliseconds: bodies come and go in pieces. */
export interface AnswerStore {
  /** The answer to a request, with the id its pieces are read by. Unfinished ones are not seen. */
  find(scope: string, key: string): Promise<(AnswerRecord & { id: number }) | undefined>;
  /**
   * Begins an answer, which nobody sees before `seal`. Its id is one that no other answer ever has. Its body is kept
   * where the record says so and the bytes of all bodies stay within the bound.
   */
  begin(record: AnswerRecord, bounds: Pick<AnswerBounds, "maxBytes">): Promise<{ id: number; kept: boolean }>;
  /** Adds a piece of the body, counted from 0; at most about 1 MiB. */
  write(id: number, index: number, piece: Uint8Array): Promise<void>;
  /** Shows the answer, in place of an older one of its scope and key. */
  seal(id: number): Promise<void>;
  /** A piece of a body; `undefined` where it has gone. */
  read(id: number, index: number): Promise<Uint8Array<ArrayBuffer> | undefined>;
  /**
   * Takes a request for the one who does its work, for so many milliseconds: whoever comes first has it, of all nodes.
   * Asked again by who has it, it renews.
   * @param after a holder whose time is over: what it came to is known, and the request may be taken from it
   * @returns whose it is; `undefined` where it is this holder's
   */
  claim(claim: AnswerClaim, forMs: number, after?: string): Promise<OtherClaim | undefined>;
  /** Whether somebody does it. */
  isClaimed(scope: string, key: string): Promise<boolean>;
  /** Lets it go, where it is still this holder's. */
  release(claim: Pick<AnswerClaim, "scope" | "key" | "holder">): Promise<void>;
  /** Bytes of all bodies that are kept or being written. */
  keptBytes(): Promise<number>;
  /** Does a little of the work to get within bounds. True while there is more to do. */
  prune(bounds: AnswerBounds): Promise<boolean>;
}
