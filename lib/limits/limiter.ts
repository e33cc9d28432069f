/** The interface of limiters, which count requests, tokens and concurrency against limits. */
import type { Hold } from "../store/ledger.ts";

/** Unit of a limit. Requests and tokens are counted over any 60 seconds, concurrency at any moment. */
export type LimitUnit = "requests" | "tokens" | "concurrency";

/** One limit that a request counts against. */
export interface LimitRequest {
  /** Owner of the limit, such as `key:key_abc`, `group:default` or `model:acme/one`. Name and unit identify a limit. */
  name: string;
  unit: LimitUnit;
  limit: number;
  /** Cost of the request: 1, or its estimated tokens. A request that costs more than `limit` is never admitted. */
  cost: number;
  /** True: requests are counted but never refused. */
  reportOnly: boolean;
}

/** Status of a limit at the moment of a decision or a reading. */
export interface LimitStatus {
  limitRequest: LimitRequest;
  /** Remaining amount, at least 0. */
  remaining: number;
  /** Milliseconds until nothing counts against the limit any more. */
  resetMs: number;
}

/** Decision about a request. */
export interface LimitDecision {
  /** False: nothing was reserved. */
  admitted: boolean;
  statuses: LimitStatus[];
  /**
   * Limits without room for the request: those that refuse it first, longest wait first. If the request is admitted,
   * these are report-only limits.
   */
  exceeded: LimitRequest[];
  /** Milliseconds until there is room, as far as is known: 0 if admitted, `Infinity` if the cost exceeds a limit. */
  retryAfterMs: number;
}

/** Facts of a running request that the ledger needs if its process crashes. */
export type AdmittedRequest = Pick<Hold, "id" | "at" | "keyId" | "group" | "model" | "endpoint">;

/** A request for admission. */
export interface AdmissionRequest {
  id: string;
  /** At most one for each name and unit. */
  limitRequests: readonly LimitRequest[];
  /** Longest duration of the request, in milliseconds. Its slots are freed after it in any case. */
  forMs: number;
  /** True: a decision that admits the request may leave out the statuses. */
  skipStatuses?: boolean;
  /** Facts for other nodes, which enter the request as lost if this process crashes; absent: they do not know of it. */
  running?: AdmittedRequest | undefined;
}

/**
 * Counts requests against limits. A request is known by its id from `take` to `end` or `undo`, at most for its longest
 * duration plus a minute; calls with an unknown id do nothing. The limiter in memory answers synchronously.
 */
export interface Limiter {
  /**
   * Reserves the costs of a request in all its limits, or in none if one of them refuses.
   * @throws {RangeError} if the id exists already, or an amount is not a non-negative integer
   */
  take(request: AdmissionRequest): LimitDecision | Promise<LimitDecision>;
  /**
   * Ends a request: frees its slots and replaces its estimated tokens with the actual number. A second call does
   * nothing.
   * @param options `isEntered` false: other nodes know the request until `forget` is called, because its ledger entry
   * is not durable yet
   * @returns the statuses afterwards; none for an unknown id
   * @throws {RangeError} for an invalid number of tokens; the slots are freed and the estimate stays
   */
  end(id: string, tokens: number, options?: { isEntered: boolean }): LimitStatus[] | Promise<LimitStatus[]>;
  /**
   * Lets other nodes forget an ended request, because its ledger entry is durable. Absent if there are no other nodes.
   */
  forget?(id: string): void;
  /** Releases everything that a request reserved, as if it had never been made. */
  undo(id: string): Promise<void>;
  /** Reads statuses without reserving anything. */
  statuses(limitRequests: readonly LimitRequest[]): Promise<LimitStatus[]>;
  /** True if the limits are enforced across all nodes. False while each node admits its share, or nothing. */
  readonly healthy: boolean;
  /** Milliseconds since the shared store last answered another node, as far as is known. */
  readonly msSinceOthersAnswered?: number | undefined;
  /** Releases all reservations and closes the connection. */
  close(): Promise<void>;
}
