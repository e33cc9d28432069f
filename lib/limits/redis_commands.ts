/** The scripts in Redis as functions. Times in Redis are those of its own clock. */
import type { AdmissionRequest, AdmittedRequest, LimitDecision, LimitRequest, LimitStatus } from "./limiter.ts";
import type { RedisConnection, ScriptReply } from "./redis_connection.ts";
import { UNIT_LETTERS } from "./redis_scripts.ts";
import { decide } from "./decide.ts";
import { BUCKET_MS, leaseEnd, windowEnd } from "./sliding_window.ts";

/** Time at which a request was counted, by the server's clock. */
export interface TakenAt {
  /** End of the bucket in which its requests and tokens are counted, in buckets. */
  bucket: number;
  /** When its slots are free whatever happens, in milliseconds. */
  leaseEnd: number;
}

/** Tokens that a request used in the end, "unknown", or "undone" for a request that is to count as if it had never been. */
export type UsedTokens = number | "unknown" | "undone";

/**
 * The counts in Redis as one node sees them. `undefined` instead of an answer: the node's session has ended, because it was
 * silent for too long or Redis has forgotten it, and nothing was done.
 */
export interface RedisCommands {
  take(request: AdmissionRequest): Promise<{ decision: LimitDecision; at: TakenAt } | undefined>;
  /** Ends a request once and returns the statuses afterwards. A second or a late call changes nothing. */
  end(
    id: string,
    request: { limitRequests: readonly LimitRequest[]; at: TakenAt; used: UsedTokens; keepsFacts?: boolean },
  ): Promise<LimitStatus[] | undefined>;
  /** Forgets requests that have ended with their facts kept. */
  forget(ids: readonly string[]): Promise<void>;
  statuses(limitRequests: readonly LimitRequest[]): Promise<LimitStatus[] | undefined>;
  /** Begins a session, in which only these requests run. @returns the number of nodes */
  join(leaseMs: number, running: Iterable<string>): Promise<number>;
  /**
   * Renews the session.
   * @param storeHeardMs milliseconds since the store answered this node; absent: it is out of reach, or not shared
   */
  renew(leaseMs: number, storeHeardMs?: number): Promise<HeartbeatAnswer | undefined>;
  /** Ends the session and frees what the node holds. */
  retire(): Promise<void>;
  /** Some requests that ran when their node's session ended. They are returned again until they are named as `entered`. */
  lost(entered: readonly string[]): Promise<[id: string, AdmittedRequest][]>;
}

/** Facts that a node learns when it renews its session. */
export interface HeartbeatAnswer {
  nodes: number;
  /** Slots of an ended session are to be freed: the next beat comes at once. */
  more: boolean;
  /** Milliseconds since the store answered another node last; absent where it answers none. */
  othersHeardMs?: number;
  /** Requests to be entered as lost. */
  lost: number;
}

/** Parts of the counts. */
export interface RedisCommandsOptions {
  connection: RedisConnection;
  /** Name of the node. */
  node: string;
  /** A clock in place of the server's, for tests. */
  clock?: () => number;
}

/** Binds the scripts to a connection. Each function fails with `OutOfReach` where Redis does not answer. */
export function createRedisCommands({ connection, node, clock }: RedisCommandsOptions): RedisCommands {
  const now = () => clock === undefined ? "" : Math.floor(clock());
  return {
    async take({ id, limitRequests, forMs, running }) {
      const facts = running === undefined ? "" : JSON.stringify(running);
      const [admitted = 0, at = 0, ...rest] = numbers(
        await connection.run("take", [now(), node, id, forMs, facts, writeLimitRequests(limitRequests)]),
      );
      if (admitted < 0) return undefined;
      const decided = decide(limitRequests, (_, index) => {
        const waitMs = rest[index] ?? 0;
        return waitMs < 0 ? Infinity : waitMs;
      });
      const statuses = readStatuses(limitRequests, rest.slice(limitRequests.length));
      return {
        decision: { ...decided, statuses },
        at: { bucket: windowEnd(at) / BUCKET_MS, leaseEnd: leaseEnd(at, forMs) },
      };
    },
    async end(id, { limitRequests, at: { bucket, leaseEnd }, used, keepsFacts = false }) {
      const tokens = used === "undone" ? "" : used === "unknown" ? "-" : used;
      const [known = 0, ...rest] = numbers(
        await connection.run("end", [
          now(),
          node,
          id,
          writeLimitRequests(limitRequests),
          bucket,
          leaseEnd,
          tokens,
          keepsFacts ? 1 : 0,
        ]),
      );
      if (known < 0) return undefined;
      return known === 0 ? [] : readStatuses(limitRequests, rest);
    },
    async forget(ids) {
      await connection.run("forget", [now(), node, ...ids]);
    },
    async statuses(limitRequests) {
      const [known = 0, ...rest] = numbers(
        await connection.run("look", [now(), node, writeLimitRequests(limitRequests)]),
      );
      return known < 0 ? undefined : readStatuses(limitRequests, rest);
    },
    async join(leaseMs, running) {
      const [nodes] = numbers(await connection.run("join", [now(), node, leaseMs, ...running]));
      return nodes ?? 1;
    },
    async renew(leaseMs, storeHeardMs) {
      const heard = storeHeardMs === undefined ? "" : Math.round(storeHeardMs);
      const [nodes = 0, more, others = -1, lost = 0] = numbers(
        await connection.run("beat", [now(), node, leaseMs, heard]),
      );
      if (nodes < 0) return undefined;
      return { nodes, more: more === 1, lost, ...(others >= 0 && { othersHeardMs: others }) };
    },
    async retire() {
      while ((await connection.run("retire", [now(), node]))[0] === 1);
    },
    async lost(entered) {
      const answer = (await connection.run("lost", [now(), ...entered])).map(String);
      const found: [string, AdmittedRequest][] = [];
      for (let at = 0; at + 1 < answer.length; at += 2) {
        found.push([answer[at] ?? "", JSON.parse(answer[at + 1] ?? "")]);
      }
      return found;
    },
  };
}

function numbers(answer: ScriptReply): number[] {
  return answer.map(Number);
}

/** Names hold no line ends: they are made of ids. */
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
