/** Limits of rate and concurrency: what a request takes, and whether there is room for it. */

/** What a limit counts. Requests and tokens are counted over any 60 seconds, concurrency at one time. */
export type LimitUnit = "requests" | "tokens" | "concurrency";

/** One limit that a request counts against. */
export interface Claim {
  /** Whose limit it is, such as `key:key_abc`, `group:default` or `model:acme/one`: those of one name and unit share it. */
  name: string;
  unit: LimitUnit;
  limit: number;
  /** What the request takes of it: 1, or an estimate of its tokens, at most `limit`. */
  cost: number;
  /** True: it is counted, but refuses nothing. */
  reportOnly: boolean;
}

/** How a limit stands after a request was looked at. */
export interface Standing {
  claim: Claim;
  /** What is left of it, at least 0. */
  remaining: number;
  /** Milliseconds until all of it is there again. */
  resetMs: number;
}

/** What came of a wish to take. */
export interface Taking {
  /** False: nothing was taken of any limit. */
  admitted: boolean;
  standings: Standing[];
  /** The claims that there is no room for; of those, only report-only ones where the request is admitted. */
  over: Claim[];
  /** Milliseconds until there is room, as far as that is known now; 0 where the request is admitted. */
  retryAfterMs: number;
}

/** Keeps count of limits. A request is known by its id from `take` to `end` or `undo`. */
export interface Limiter {
  /**
   * Takes every claim, or none: what one limit refuses takes nothing of the others.
   * @param forMs longest time the request can last; after it, its slots are free again whatever happens
   */
  take(request: { id: string; claims: readonly Claim[]; forMs: number }): Promise<Taking>;
  /** Ends a request: its slots are free, and its estimate of tokens gives way to their number. More than once does nothing. */
  end(id: string, tokens: number): Promise<void>;
  /** Takes a request back as if it had never been. */
  undo(id: string): Promise<void>;
  /** How these limits stand now. */
  standings(claims: readonly Claim[]): Promise<Standing[]>;
}
