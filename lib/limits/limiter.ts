/** Limits of rate and concurrency: what a request takes, and whether there is room for it. */
import type { Hold } from "../store/ledger.ts";

/** What a limit counts. Requests and tokens are counted over any 60 seconds, concurrency at one time. */
export type LimitUnit = "requests" | "tokens" | "concurrency";

/** One limit that a request counts against. */
export interface LimitRequest {
  /** Whose limit it is, such as `key:key_abc`, `group:default` or `model:acme/one`: those of one name and unit share it. */
  name: string;
  unit: LimitUnit;
  limit: number;
  /** What the request takes of it: 1, or an estimate of its tokens. More than `limit` can never be admitted. */
  cost: number;
  /** True: it is counted, but refuses nothing. */
  reportOnly: boolean;
}

/** How a limit stands after a request was looked at. */
export interface LimitStatus {
  limitRequest: LimitRequest;
  /** What is left of it, at least 0. */
  remaining: number;
  /** Milliseconds until all of it is there again. */
  resetMs: number;
}

/** What came of a wish to take. */
export interface LimitDecision {
  /** False: nothing was taken of any limit. */
  admitted: boolean;
  statuses: LimitStatus[];
  /**
   * The limitRequests that there is no room for; of those, only report-only ones where the request is admitted. Those that
   * refuse come first, the one with the longest wait before the others.
   */
  over: LimitRequest[];
  /**
   * Milliseconds until there is room, as far as that is known now; 0 where the request is admitted, `Infinity` where it
   * takes more than a whole limit.
   */
  retryAfterMs: number;
}

/** What the ledger has to know of a request where its process is killed. */
export type RunningRequest = Pick<Hold, "id" | "at" | "keyId" | "group" | "model" | "endpoint">;

/** What a request wishes to take. */
export interface AdmissionRequest {
  id: string;
  /** No two of the same name and unit. */
  limitRequests: readonly LimitRequest[];
  /** Longest time the request can last, in milliseconds; after it, its slots are free again whatever happens. */
  forMs: number;
  /** True: how limits stand is not asked where it is admitted, and need not be told. */
  skipStatuses?: boolean;
  /** Makes the request known to other nodes, which enter it as lost where this process is killed. */
  running?: RunningRequest | undefined;
}

/**
 * Keeps count of limits. A request is known by its id from `take` to `end` or `undo`, at most for its longest time and a
 * minute: about an id that is not known there is nothing to do. Who counts in memory answers at once.
 */
export interface Limiter {
  /**
   * Takes every limitRequest, or none: what one limit refuses takes nothing of the others.
   * @throws {RangeError} where the id has taken before, or an amount is none: not a whole number, or below 0
   */
  take(wish: AdmissionRequest): LimitDecision | Promise<LimitDecision>;
  /**
   * Ends a request: its slots are free, and its estimate of tokens gives way to their number. More than once does nothing.
   * @returns how its limits stand afterwards; nothing where the id is not known
   * @throws {RangeError} where that is no number of tokens; the slots are free and the estimate stands
   */
  end(id: string, tokens: number): LimitStatus[] | Promise<LimitStatus[]>;
  /** Takes a request back as if it had never been. */
  undo(id: string): Promise<void>;
  /** How these limits stand now. */
  statuses(limitRequests: readonly LimitRequest[]): Promise<LimitStatus[]>;
  /** Whether the limits hold for all nodes. False while each keeps to a share of its own, or admits nothing. */
  readonly healthy: boolean;
  /** Milliseconds since the store that nodes share answered another node last, as far as is known. */
  readonly othersHeardMs?: number | undefined;
  /** Frees what it holds. */
  close(): Promise<void>;
}
