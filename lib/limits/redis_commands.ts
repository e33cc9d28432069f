/** Typed functions that call the Redis scripts. Times in Redis are by its own clock. */
import type { AdmissionRequest, AdmittedRequest, LimitDecision, LimitRequest, LimitStatus } from "./limiter.ts";
import type { RedisConnection, ScriptReply } from "./redis_connection.ts";
import { type ScriptName, UNIT_LETTERS } from "./redis_scripts.ts";
import { decideLimits } from "./decide.ts";
import { BUCKET_MS, leaseEnd, windowEnd } from "./sliding_window.ts";

/** The place where Redis has counted a request. */
export interface ReservedSlot {
  /** End of the bucket that counts its requests and tokens, in buckets. */
  bucket: number;
  /** When its slots expire, in milliseconds. */
  leaseEnd: number;
}

/** Tokens that a request used, or `unknown`; `undone`: the request counts as if it had never been made. */
export type UsedTokens = number | "unknown" | "undone";

/** Result of a heartbeat. */
export interface HeartbeatAnswer {
  nodes: number;
  /** True: slots of an ended session remain to be freed, so the next heartbeat follows at once. */
  more: boolean;
  /** Milliseconds since the store last answered another node; absent if it answers none. */
  msSinceOthersAnswered?: number;
  /** Number of requests to enter as lost. */
  lost: number;
}

/**
 * The Redis scripts for one node. Each function rejects with `RedisUnreachable` if Redis does not answer. A result of
 * `undefined` means that nothing was done because the node's session has ended: the node missed its heartbeats, or Redis
 * lost its data.
 */
export class RedisCommands {
  readonly #connection: RedisConnection;
  readonly #node: string;
  readonly #clock: (() => number) | undefined;

  /** @param options `node`: name of the node; `clock`: replaces the server's clock in tests */
  constructor({ connection, node, clock }: { connection: RedisConnection; node: string; clock?: () => number }) {
    this.#connection = connection;
    this.#node = node;
    this.#clock = clock;
  }

  /** Reserves all limits of a request, or none if one of them refuses. */
  async take(
    { id, limitRequests, forMs, running }: AdmissionRequest,
  ): Promise<{ decision: LimitDecision; at: ReservedSlot } | undefined> {
    const facts = running === undefined ? "" : JSON.stringify(running);
    const [admitted = 0, at = 0, ...waitsAndStatuses] = numbers(
      await this.#run("take", this.#node, id, forMs, facts, writeLimitRequests(limitRequests)),
    );
    if (admitted < 0) return undefined;
    const decided = decideLimits(limitRequests, (_, index) => {
      const waitMs = waitsAndStatuses[index] ?? 0;
      return waitMs < 0 ? Infinity : waitMs;
    });
    const statuses = readStatuses(limitRequests, waitsAndStatuses.slice(limitRequests.length));
    return {
      decision: { ...decided, statuses },
      at: { bucket: windowEnd(at) / BUCKET_MS, leaseEnd: leaseEnd(at, forMs) },
    };
  }

  /**
   * Ends a request and returns the statuses afterwards. A second or late call changes nothing.
   * @param request `keepsFacts`: Redis keeps the facts for the ledger until `forget` is called
   */
  async end(
    id: string,
    { limitRequests, at: { bucket, leaseEnd }, used, keepsFacts }: {
      limitRequests: readonly LimitRequest[];
      at: ReservedSlot;
      used: UsedTokens;
      keepsFacts: boolean;
    },
  ): Promise<LimitStatus[] | undefined> {
    let tokens: number | string = used;
    if (used === "undone") tokens = "";
    else if (used === "unknown") tokens = "-";
    const limits = writeLimitRequests(limitRequests);
    const [known = 0, ...statuses] = numbers(
      await this.#run("end", this.#node, id, limits, bucket, leaseEnd, tokens, keepsFacts ? 1 : 0),
    );
    if (known < 0) return undefined;
    return known === 0 ? [] : readStatuses(limitRequests, statuses);
  }

  /** Deletes the kept facts of ended requests. */
  async forget(ids: readonly string[]): Promise<void> {
    await this.#run("forget", this.#node, ...ids);
  }

  /** Reads statuses without reserving anything. */
  async statuses(limitRequests: readonly LimitRequest[]): Promise<LimitStatus[] | undefined> {
    const [known = 0, ...statuses] = numbers(await this.#run("look", this.#node, writeLimitRequests(limitRequests)));
    return known < 0 ? undefined : readStatuses(limitRequests, statuses);
  }

  /**
   * Begins a session, and frees everything that the node holds for other requests than the running ones.
   * @returns the number of nodes
   */
  async join(leaseMs: number, running: Iterable<string>): Promise<number> {
    const [nodes] = numbers(await this.#run("join", this.#node, leaseMs, ...running));
    return nodes ?? 1;
  }

  /**
   * Renews the session.
   * @param msSinceStoreAnswered milliseconds since the store last answered this node; absent: it is unreachable or not
   * shared
   */
  async renew(leaseMs: number, msSinceStoreAnswered?: number): Promise<HeartbeatAnswer | undefined> {
    const sinceAnswer = msSinceStoreAnswered === undefined ? "" : Math.round(msSinceStoreAnswered);
    const [nodes = 0, more, others = -1, lost = 0] = numbers(await this.#run("beat", this.#node, leaseMs, sinceAnswer));
    if (nodes < 0) return undefined;
    return { nodes, more: more === 1, lost, ...(others >= 0 && { msSinceOthersAnswered: others }) };
  }

  /** Ends the session and frees what the node holds. */
  async retire(): Promise<void> {
    while ((await this.#run("retire", this.#node))[0] === 1);
  }

  /**
   * Returns some of the requests that ran when the session of their node ended. They are returned again until their ids
   * are passed as `entered`.
   */
  async lost(entered: readonly string[]): Promise<[id: string, AdmittedRequest][]> {
    const answer = (await this.#run("lost", ...entered)).map(String);
    const requests: [string, AdmittedRequest][] = [];
    for (let at = 0; at + 1 < answer.length; at += 2) {
      requests.push([answer[at] ?? "", JSON.parse(answer[at + 1] ?? "")]);
    }
    return requests;
  }

  #run(script: ScriptName, ...args: (string | number)[]): Promise<ScriptReply> {
    return this.#connection.run(script, [this.#clock === undefined ? "" : Math.floor(this.#clock()), ...args]);
  }
}

function numbers(answer: ScriptReply): number[] {
  return answer.map(Number);
}

/** Writes limits as lines, as the scripts expect them. Names have no line feeds, since they consist of ids. */
function writeLimitRequests(limitRequests: readonly LimitRequest[]): string {
  return limitRequests.map(({ name, unit, limit, cost, reportOnly }) =>
    `${UNIT_LETTERS[unit]}${reportOnly ? 1 : 0} ${limit} ${cost} ${name}`
  ).join("\n");
}

function readStatuses(limitRequests: readonly LimitRequest[], numbers: readonly number[]): LimitStatus[] {
  return limitRequests.map((limitRequest, index) => {
    const [sum = 0, resetMs = 0] = numbers.slice(2 * index, 2 * index + 2);
    return { limitRequest, remaining: Math.max(0, limitRequest.limit - sum), resetMs };
  });
}
