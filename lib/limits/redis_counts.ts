/** What scripts are asked in Redis, and what their answers mean. Times in Redis are those of its own clock. */
import type { Claim, LimitUnit, Standing, Taking, Wish } from "./limiter.ts";
import type { Answer, Link } from "./redis_link.ts";
import { UNIT_LETTERS } from "./redis_scripts.ts";
import { judge } from "./taking.ts";
import { BUCKET_MS, leaseEnd, windowEnd } from "./window.ts";

/** Where in time a request has taken, by the clock of the server. */
export interface Place {
  /** End of the bucket in which its requests and tokens are counted, in buckets. */
  bucket: number;
  /** When its slots are free whatever happens, in milliseconds. */
  leaseEnd: number;
}

/** A request that is put there, whoever has admitted it. */
export interface Put {
  id: string;
  claims: readonly Claim[];
  place: Place;
  /** Whether its requests and tokens are counted there already. */
  counted: boolean;
}

/** An amount that is added to a window. */
export interface Pour {
  name: string;
  unit: LimitUnit;
  bucket: number;
  amount: number;
}

/** What a request used in the end: tokens, an unknown number of them, or nothing, as if it had never been. */
export type Used = number | "unknown" | "undone";

/**
 * The counts in Redis as one node sees them. `undefined` instead of an answer: the node is taken to be over, because it was
 * silent for too long or Redis has forgotten it, and nothing was done.
 */
export interface Counts {
  take(wish: Wish): Promise<{ taking: Taking; place: Place } | undefined>;
  /** How its limits stand afterwards. It ends once: afterwards, and when it is too late, nothing is changed. */
  end(id: string, request: { claims: readonly Claim[]; place: Place; used: Used }): Promise<Standing[] | undefined>;
  standings(claims: readonly Claim[]): Promise<Standing[] | undefined>;
  /** Begins the life of the node. @param epoch a name for what is kept, where it has none */
  join(lifeMs: number, epoch: string): Promise<{ now: number; nodes: number; epoch: string }>;
  /**
   * Tells that the node lives, and when the store answered it last.
   * @param storeHeardMs absent: the store is out of reach, or not shared
   * @returns `more`: something is to be freed, and the next beat should come at once
   */
  beat(lifeMs: number, storeHeardMs?: number): Promise<BeatAnswer | undefined>;
  /** Ends the life of the node: nothing that it was asked before is done any more. `undone`: as if they had never been. */
  retire(undone: readonly string[]): Promise<void>;
  /** @returns whether the node is known */
  put(requests: readonly Put[]): Promise<boolean>;
  /** @returns whether the node is known */
  pour(amounts: readonly Pour[]): Promise<boolean>;
}

/** What a node learns with a sign of life. */
export interface BeatAnswer {
  nodes: number;
  more: boolean;
  /** Milliseconds since the store answered another node last; absent where it answers none. */
  othersHeardMs?: number;
}

/** What counts are asked over. */
export interface CountsParts {
  link: Link;
  /** Name of the node. */
  node: string;
  /** A clock in place of the server's, for tests. */
  clock?: () => number;
}

/** The counts as a node sees them. What it is asked fails with `OutOfReach` where Redis does not answer. */
export function createCounts({ link, node, clock }: CountsParts): Counts {
  const now = () => clock === undefined ? "" : Math.floor(clock());
  return {
    async take({ id, claims, forMs }) {
      const [admitted = 0, at = 0, ...rest] = numbers(
        await link.run("take", [now(), node, id, forMs, writeClaims(claims)]),
      );
      if (admitted < 0) return undefined;
      const judgement = judge(claims, (_, index) => {
        const waitMs = rest[index] ?? 0;
        return waitMs < 0 ? Infinity : waitMs;
      });
      const standings = readStandings(claims, rest.slice(claims.length));
      const place = { bucket: windowEnd(at) / BUCKET_MS, leaseEnd: leaseEnd(at, forMs) };
      return { taking: { ...judgement, standings }, place };
    },
    async end(id, { claims, place: { bucket, leaseEnd }, used }) {
      const told = used === "undone" ? "" : used === "unknown" ? "-" : used;
      const [known = 0, ...rest] = numbers(
        await link.run("end", [now(), node, id, writeClaims(claims), bucket, leaseEnd, told]),
      );
      if (known < 0) return undefined;
      return known === 0 ? [] : readStandings(claims, rest);
    },
    async standings(claims) {
      const [known = 0, ...rest] = numbers(await link.run("look", [now(), node, writeClaims(claims)]));
      return known < 0 ? undefined : readStandings(claims, rest);
    },
    async join(lifeMs, name) {
      const [at, nodes, epoch] = await link.run("join", [now(), node, lifeMs, name]);
      return { now: Number(at), nodes: Number(nodes), epoch: String(epoch) };
    },
    async beat(lifeMs, storeHeardMs) {
      const heard = storeHeardMs === undefined ? "" : Math.round(storeHeardMs);
      const [nodes = 0, more, others = -1] = numbers(await link.run("beat", [now(), node, lifeMs, heard]));
      if (nodes < 0) return undefined;
      return { nodes, more: more === 1, ...(others >= 0 && { othersHeardMs: others }) };
    },
    async retire(undone) {
      let ids = undone;
      while ((await link.run("retire", [now(), node, ...ids]))[0] === 1) ids = [];
    },
    async put(requests) {
      const args = requests.flatMap(({ id, claims, place, counted }) => [
        ...[id, writeClaims(claims), place.bucket, place.leaseEnd],
        counted ? 0 : 1,
      ]);
      return args.length === 0 || (await link.run("put", [now(), node, ...args]))[0] === 1;
    },
    async pour(amounts) {
      const args = amounts.flatMap(({ name, unit, bucket, amount }) => [UNIT_LETTERS[unit], name, bucket, amount]);
      return args.length === 0 || (await link.run("pour", [now(), node, ...args]))[0] === 1;
    },
  };
}

function numbers(answer: Answer): number[] {
  return answer.map(Number);
}

/** Names hold no line ends: they are made of ids. */
function writeClaims(claims: readonly Claim[]): string {
  return claims.map(({ name, unit, limit, cost, reportOnly }) =>
    `${UNIT_LETTERS[unit]}${reportOnly ? 1 : 0} ${limit} ${cost} ${name}`
  ).join("\n");
}

function readStandings(claims: readonly Claim[], told: readonly number[]): Standing[] {
  return claims.map((claim, index) => {
    const [sum = 0, resetMs = 0] = told.slice(2 * index, 2 * index + 2);
    return { claim, remaining: Math.max(0, claim.limit - sum), resetMs };
  });
}
