/** Limits of rate and concurrency: the interface of everything that counts them. */
import type { Hold } from "../store/ledger.ts";

/** Unit of a limit. Requests and tokens are counted over any 60 seconds, concurrency at one time. */
export type LimitUnit = "requests" | "tokens" | "concurrency";

/** One limit that a request counts against. */
export interface LimitRequest {
  /** Owner of the limit, such as `key:key_abc`, `group:default` or `model:acme/one`. Name and unit identify a limit. */
  name: string;
  unit: LimitUnit;
  limit: number;
  /** Amount that the request takes: 1, or an estimate of its tokens. More than `limit` is never admitted. */
  cost: number;
  /** True: it is counted, but refuses nothing. */
  reportOnly: boolean;
}

/** Status of a limit after a request was looked at. */
export interface LimitStatus {
  limitRequest: LimitRequest;
  /** Amount that is left, at least 0. */
  remaining: number;
  /** Milliseconds until nothing is taken any more. */
  resetMs: number;
}

/** Decision about a request. */
export interface LimitDecision {
  /** False: nothing was taken of any limit. */
  admitted: boolean;
  statuses: LimitStatus[];
  /**
   * Limits without room for the request, those that refuse it first and the one with the longest wait before the others.
   * Where the request is admitted, they only report.
   */
  over: LimitRequest[];
  /** Milliseconds until there is room, as far as is known: 0 where admitted, `Infinity` above a whole limit. */
  retryAfterMs: number;
}

/** Facts for the ledger about a request whose process is killed. */
export type AdmittedRequest = Pick<Hold, "id" | "at" | "keyId" | "group" | "model" | "endpoint">;

/** A request that is to be admitted. */
export interface AdmissionRequest {
  id: string;
  /** At most one for each name and unit. */
  limitRequests: readonly LimitRequest[];
  /** Longest time the request can last, in milliseconds. Its slots are free after it whatever happens. */
  forMs: number;
  /** True: a decision that admits it need not hold statuses. */
  skipStatuses?: boolean;
  /** Makes the request known to other nodes, which enter it as lost where this process is killed. */
  running?: AdmittedRequest | undefined;
}

/**
 * Counts limits. It knows a request by its id from `take` to `end` or `undo`, at most for its longest time and a minute;
 * calls about an unknown id do nothing. A limiter in memory answers synchronously.
 */
export interface Limiter {
  /**
   * Takes of every limit, or of none where one of them refuses.
   * @throws {RangeError} where the id was taken before, or an amount is not a whole number of at least 0
   */
  take(request: AdmissionRequest): LimitDecision | Promise<LimitDecision>;
  /**
   * Ends a request: its slots are free, and the number of its tokens replaces their estimate. A second call does nothing.
   * @param options `isEntered` false: the request stays known to other nodes until `forget`, as its ledger entry is not durable yet
   * @returns the statuses of its limits afterwards; none where the id is not known
   * @throws {RangeError} where the number is none; the slots are free and the estimate stays
   */
  end(id: string, tokens: number, options?: { isEntered: boolean }): LimitStatus[] | Promise<LimitStatus[]>;
  /** Lets other nodes forget a request that has ended, because its ledger entry is durable. Absent where no node would enter it. */
  forget?(id: string): void;
  /** Gives back all that a request took. */
  undo(id: string): Promise<void>;
  /** Reads statuses without taking anything. */
  statuses(limitRequests: readonly LimitRequest[]): Promise<LimitStatus[]>;
  /** True if the limits hold for all nodes. False while each node admits its share, or nothing. */
  readonly healthy: boolean;
  /** Milliseconds since the store that nodes share answered another node last, as far as is known. */
  readonly othersHeardMs?: number | undefined;
  /** Releases everything and closes the connection. */
  close(): Promise<void>;
}
