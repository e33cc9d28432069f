/** Limits that several nodes count together in Redis, and a node's share of them while Redis is out of reach. */
import { GatewayError } from "../errors.ts";
import type { Secret } from "../secret.ts";
import type { AdmissionRequest, LimitDecision, Limiter, LimitRequest, LimitStatus } from "./limiter.ts";
import { createMemoryLimiter, LATE_MS } from "./memory_limiter.ts";
import { NodeSession, type NodeSessionOptions } from "./node_session.ts";
import type { LimiterOptions } from "./open_limiter.ts";
import type { TakenAt, UsedTokens } from "./redis_commands.ts";
import { PREFIX } from "./redis_scripts.ts";
import { divideLimits, nameLimits, nameLimitsInStatuses } from "./share.ts";
import { assertAdmissionRequest, isAmount } from "./decide.ts";
import { leaseEnd } from "./sliding_window.ts";

/** When a client may try again while nothing is admitted, in milliseconds. */
const RETRY_MS = 1_000;

/** Requests looked at by each `take` to find those that were never ended. */
const SWEPT = 2;

/** A request that was admitted and has not ended. */
interface OpenRequest {
  readonly id: string;
  readonly limitRequests: readonly LimitRequest[];
  /** When its slots are free whatever happens, by the clock of the node. */
  readonly leaseEnd: number;
  /** Where Redis counts it; absent where it was admitted without Redis. */
  readonly at?: TakenAt;
  isEnding: boolean;
  /** Whether other nodes know it. */
  readonly isKnown: boolean;
}

/** Opens a limiter that counts in Redis; where Redis is out of reach, from the start or later, it keeps to its share. */
export function openRedisLimiter(url: Secret, options: LimiterOptions): Promise<Limiter> {
  return openSharedLimiter(url, {
    ...options,
    random: Math.random,
    node: crypto.randomUUID().slice(0, 13),
    prefix: PREFIX,
  });
}

/**
 * Opens a limiter from all its parts.
 *
 * The memory of the node counts whatever the node admits, with Redis or without: against that it holds its share.
 */
export async function openSharedLimiter(url: Secret, parts: NodeSessionOptions): Promise<Limiter> {
  const requests = new Map<string, OpenRequest>();
  const pending = new Map<string, Promise<LimitDecision>>();
  const own = createMemoryLimiter(parts);
  /** Requests that have ended, and whose ledger entries are not durable. */
  const unentered = new Set<string>();
  /** Requests that Redis is to forget. */
  let forgotten: string[] = [];
  let isForgetting = false;
  const session = new NodeSession(url, {
    parts,
    running: () => [...unentered, ...idsInRedis(requests.values())],
  });
  let cursor = requests.values();

  async function takeFromAll(request: AdmissionRequest): Promise<LimitDecision> {
    const answer = await session.ask(async (commands) => {
      const answer = await commands.take(request);
      if (answer?.decision.admitted) {
        remember(request, answer.at);
        own.take({ id: request.id, limitRequests: request.limitRequests.map(onlyCounted), forMs: request.forMs });
      }
      return answer;
    });
    return answer === undefined ? takeShare(request) : answer.decision;
  }

  function takeShare(request: AdmissionRequest): LimitDecision {
    const { limitRequests } = request;
    if (parts.outage === "closed" && limitRequests.some(({ reportOnly }) => !reportOnly)) {
      throw new GatewayError("overloaded", "Cannot count limits now: try again", { retryAfterMs: RETRY_MS });
    }
    const shares = divideLimits(limitRequests, session.nodes);
    const decision = own.take({ ...request, limitRequests: shares });
    if (decision.admitted) remember(request);
    return nameLimits(decision, { limitRequests, shares });
  }

  function remember({ id, limitRequests, forMs, running }: AdmissionRequest, at?: TakenAt): void {
    requests.set(id, {
      id,
      limitRequests,
      leaseEnd: leaseEnd(session.now(), forMs),
      ...(at !== undefined && { at }),
      isEnding: false,
      isKnown: at !== undefined && running !== undefined,
    });
  }

  /** @returns the statuses afterwards, or `undefined` where the id is not known */
  async function finish(id: string, used: UsedTokens, isEntered = true): Promise<LimitStatus[] | undefined> {
    await pending.get(id)?.catch(() => {});
    const request = requests.get(id);
    if (request === undefined || request.isEnding) return undefined;
    request.isEnding = true;
    const { limitRequests, at } = request;
    const keepsFacts = request.isKnown && !isEntered;
    if (keepsFacts) unentered.add(id);
    const statuses = at === undefined
      ? undefined
      : await session.ask((commands) => commands.end(id, { limitRequests, at, used, keepsFacts }));
    // Not before: a session that begins meanwhile must not free it without its tokens.
    requests.delete(id);
    if (used === "undone") await own.undo(id);
    else endOwn(id, used);
    return statuses ?? await statusesOfShares(limitRequests);
  }

  /** Forgets together what is to be forgotten while Redis is asked. */
  async function forgetAll(): Promise<void> {
    isForgetting = true;
    while (forgotten.length > 0) {
      const ids = forgotten;
      forgotten = [];
      try {
        await session.ask(async (commands) => {
          await commands.forget(ids);
          return true;
        });
      } catch {
        // Redis keeps them until the session ends. A ledger takes each id once.
      }
    }
    isForgetting = false;
  }

  function endOwn(id: string, used: number | "unknown"): void {
    try {
      own.end(id, used === "unknown" ? NaN : used);
    } catch {
      // Where the number is not known, the estimate stays.
    }
  }

  async function statusesOfShares(limitRequests: readonly LimitRequest[]): Promise<LimitStatus[]> {
    return nameLimitsInStatuses(await own.statuses(divideLimits(limitRequests, session.nodes)), limitRequests);
  }

  /** Ends requests that were not ended in their longest time. */
  function sweep(): void {
    for (let count = 0; count < SWEPT; count++) {
      const { done, value } = cursor.next();
      // A finished iterator stays finished.
      if (done === true) cursor = requests.values();
      else if (value.leaseEnd + LATE_MS < session.now()) void finish(value.id, "unknown");
    }
  }

  await session.open();
  return {
    async take(request) {
      const { id, limitRequests } = request;
      assertAdmissionRequest(request, { known: requests.has(id) || pending.has(id) });
      if (limitRequests.length === 0) return { admitted: true, statuses: [], over: [], retryAfterMs: 0 };
      sweep();
      const decision = takeFromAll(request);
      pending.set(id, decision);
      try {
        return await decision;
      } finally {
        pending.delete(id);
      }
    },
    async end(id, tokens, options) {
      const isNumber = isAmount(tokens);
      const statuses = await finish(id, isNumber ? tokens : "unknown", options?.isEntered);
      if (statuses === undefined) return [];
      if (!isNumber) throw new RangeError(`Cannot end "${id}": ${tokens} is not a number of tokens`);
      return statuses;
    },
    async undo(id) {
      await finish(id, "undone");
    },
    forget(id) {
      if (!unentered.delete(id)) return;
      forgotten.push(id);
      if (!isForgetting) void forgetAll();
    },
    statuses: async (limitRequests) =>
      await session.ask((commands) => commands.statuses(limitRequests)) ?? await statusesOfShares(limitRequests),
    get healthy() {
      return session.healthy;
    },
    get othersHeardMs() {
      return session.othersHeardMs;
    },
    close: () => session.close(),
  };
}

function onlyCounted(limitRequest: LimitRequest): LimitRequest {
  return { ...limitRequest, reportOnly: true };
}

function* idsInRedis(requests: Iterable<OpenRequest>): Iterable<string> {
  for (const { id, at } of requests) {
    if (at !== undefined) yield id;
  }
}
