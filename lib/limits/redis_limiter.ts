/**
 * A limiter for several nodes, which count in Redis. While Redis is unreachable, each node enforces its share of every
 * limit.
 */
import { GatewayError } from "../errors.ts";
import type { Secret } from "../secret.ts";
import type { AdmissionRequest, LimitDecision, Limiter, LimitRequest, LimitStatus } from "./limiter.ts";
import { createMemoryLimiter, LATE_MS, type MemoryLimiter } from "./memory_limiter.ts";
import { NodeSession, type NodeSessionOptions } from "./node_session.ts";
import type { LimiterOptions } from "./open_limiter.ts";
import type { ReservedSlot, UsedTokens } from "./redis_commands.ts";
import { PREFIX } from "./redis_scripts.ts";
import { divideLimits, nameLimits, nameLimitsInStatuses } from "./share.ts";
import { assertAdmissionRequest, isAmount } from "./decide.ts";
import { leaseEnd } from "./sliding_window.ts";

/** Value of `retry-after` while nothing is admitted, in milliseconds. */
const RETRY_AFTER_MS = 1_000;

/** Requests that each `take` checks, to find those that were never ended. */
const SWEPT_PER_CALL = 2;

/** An admitted request that has not ended. */
interface OpenRequest {
  readonly id: string;
  readonly limitRequests: readonly LimitRequest[];
  /** When its slots expire, by the node's clock. */
  readonly leaseEnd: number;
  /** The place where Redis has counted it; absent if it was admitted without Redis. */
  readonly at?: ReservedSlot;
  isEnding: boolean;
  /** True if other nodes know the request. */
  readonly isKnown: boolean;
}

/** Opens a limiter that counts in Redis. While Redis is unreachable, even at the start, it admits the node's share. */
export function openRedisLimiter(url: Secret, options: LimiterOptions): Promise<Limiter> {
  return openSharedLimiter(url, {
    ...options,
    random: Math.random,
    node: crypto.randomUUID().slice(0, 13),
    prefix: PREFIX,
  });
}

/**
 * Opens a limiter with given dependencies, for tests with several nodes. A limiter in the node's memory counts
 * everything that the node admits, with Redis or without, so that it can enforce its share at any time.
 */
export async function openSharedLimiter(url: Secret, parts: NodeSessionOptions): Promise<Limiter> {
  const limiter = new SharedLimiter(url, parts);
  await limiter.open();
  return limiter;
}

class SharedLimiter implements Limiter {
  readonly #parts: NodeSessionOptions;
  readonly #requests = new Map<string, OpenRequest>();
  /** Decisions in progress, by the id of the request. */
  readonly #pending = new Map<string, Promise<LimitDecision>>();
  /** Counts everything that this node admits. */
  readonly #own: MemoryLimiter;
  /** Ended requests whose ledger entries are not durable yet. */
  readonly #unentered = new Set<string>();
  /** Requests to be deleted from Redis. */
  #forgotten: string[] = [];
  #isForgetting = false;
  readonly #session: NodeSession;
  #cursor = this.#requests.values();

  constructor(url: Secret, parts: NodeSessionOptions) {
    this.#parts = parts;
    this.#own = createMemoryLimiter(parts);
    this.#session = new NodeSession(url, {
      parts,
      running: () => [
        ...this.#unentered,
        ...[...this.#requests.values()].flatMap(({ id, at }) => at === undefined ? [] : [id]),
      ],
    });
  }

  async open(): Promise<void> {
    await this.#session.open();
  }

  async take(request: AdmissionRequest): Promise<LimitDecision> {
    const { id, limitRequests } = request;
    assertAdmissionRequest(request, { known: this.#requests.has(id) || this.#pending.has(id) });
    if (limitRequests.length === 0) return { admitted: true, statuses: [], exceeded: [], retryAfterMs: 0 };
    this.#sweep();
    const decision = this.#takeFromRedis(request);
    this.#pending.set(id, decision);
    try {
      return await decision;
    } finally {
      this.#pending.delete(id);
    }
  }

  async end(id: string, tokens: number, options?: { isEntered: boolean }): Promise<LimitStatus[]> {
    const isNumber = isAmount(tokens);
    const statuses = await this.#finish(id, isNumber ? tokens : "unknown", options?.isEntered);
    if (statuses === undefined) return [];
    if (!isNumber) throw new RangeError(`Cannot end "${id}": ${tokens} is not a number of tokens`);
    return statuses;
  }

  async undo(id: string): Promise<void> {
    await this.#finish(id, "undone");
  }

  forget(id: string): void {
    if (!this.#unentered.delete(id)) return;
    this.#forgotten.push(id);
    if (!this.#isForgetting) void this.#forgetAll();
  }

  async statuses(limitRequests: readonly LimitRequest[]): Promise<LimitStatus[]> {
    return await this.#session.ask((commands) => commands.statuses(limitRequests)) ??
      await this.#statusesOfShares(limitRequests);
  }

  get healthy(): boolean {
    return this.#session.healthy;
  }

  get msSinceOthersAnswered(): number | undefined {
    return this.#session.msSinceOthersAnswered;
  }

  close(): Promise<void> {
    return this.#session.close();
  }

  async #takeFromRedis(request: AdmissionRequest): Promise<LimitDecision> {
    const answer = await this.#session.ask(async (commands) => {
      const answer = await commands.take(request);
      if (answer?.decision.admitted) {
        this.#remember(request, answer.at);
        this.#own.take({
          id: request.id,
          limitRequests: request.limitRequests.map(asReportOnly),
          forMs: request.forMs,
        });
      }
      return answer;
    });
    return answer === undefined ? this.#takeShare(request) : answer.decision;
  }

  #takeShare(request: AdmissionRequest): LimitDecision {
    const { limitRequests } = request;
    if (this.#parts.outage === "closed" && limitRequests.some(({ reportOnly }) => !reportOnly)) {
      throw new GatewayError("overloaded", "Limits cannot be checked right now: try again", {
        retryAfterMs: RETRY_AFTER_MS,
        refusal: { outage: "limits_store" },
      });
    }
    const shares = divideLimits(limitRequests, this.#session.nodes);
    const decision = this.#own.take({ ...request, limitRequests: shares });
    if (decision.admitted) this.#remember(request);
    return nameLimits(decision, { limitRequests, shares });
  }

  #remember({ id, limitRequests, forMs, running }: AdmissionRequest, at?: ReservedSlot): void {
    this.#requests.set(id, {
      id,
      limitRequests,
      leaseEnd: leaseEnd(this.#session.now(), forMs),
      ...(at !== undefined && { at }),
      isEnding: false,
      isKnown: at !== undefined && running !== undefined,
    });
  }

  /** Ends a request. Returns the statuses afterwards, or `undefined` for an unknown id. */
  async #finish(id: string, used: UsedTokens, isEntered = true): Promise<LimitStatus[] | undefined> {
    await this.#pending.get(id)?.catch(() => {});
    const request = this.#requests.get(id);
    if (request === undefined || request.isEnding) return undefined;
    request.isEnding = true;
    const { limitRequests, at } = request;
    const keepsFacts = request.isKnown && !isEntered;
    if (keepsFacts) this.#unentered.add(id);
    const statuses = at === undefined
      ? undefined
      : await this.#session.ask((commands) => commands.end(id, { limitRequests, at, used, keepsFacts }));
    // Not deleted earlier: a session that began meanwhile would free the request without counting its tokens.
    this.#requests.delete(id);
    if (used === "undone") await this.#own.undo(id);
    else this.#endOwn(id, used);
    return statuses ?? await this.#statusesOfShares(limitRequests);
  }

  /** Deletes requests from Redis, in one call all those that were queued during the previous call. */
  async #forgetAll(): Promise<void> {
    this.#isForgetting = true;
    while (this.#forgotten.length > 0) {
      const ids = this.#forgotten;
      this.#forgotten = [];
      try {
        await this.#session.ask(async (commands) => {
          await commands.forget(ids);
          return true;
        });
      } catch {
        // Redis keeps them until the session ends. This does no harm: the ledger accepts each id only once.
      }
    }
    this.#isForgetting = false;
  }

  #endOwn(id: string, used: number | "unknown"): void {
    try {
      this.#own.end(id, used === "unknown" ? NaN : used);
    } catch {
      // For an unknown number it throws, and the estimate stays.
    }
  }

  async #statusesOfShares(limitRequests: readonly LimitRequest[]): Promise<LimitStatus[]> {
    return nameLimitsInStatuses(
      await this.#own.statuses(divideLimits(limitRequests, this.#session.nodes)),
      limitRequests,
    );
  }

  /** Checks a few requests, and ends those that exceeded their longest duration. */
  #sweep(): void {
    for (let count = 0; count < SWEPT_PER_CALL; count++) {
      const { done, value } = this.#cursor.next();
      // A finished iterator cannot continue.
      if (done === true) this.#cursor = this.#requests.values();
      else if (value.leaseEnd + LATE_MS < this.#session.now()) void this.#finish(value.id, "unknown");
    }
  }
}

function asReportOnly(limitRequest: LimitRequest): LimitRequest {
  return { ...limitRequest, reportOnly: true };
}
