/** Limits that several nodes count together, and what becomes of them while nobody counts. */
import { GatewayError } from "../errors.ts";
import type { Secret } from "../secret.ts";
import { ofLimits, onlyCounted, Owed, sharesOf, standingsOfLimits } from "./alone.ts";
import type { Claim, Limiter, Standing, Taking, Wish } from "./limiter.ts";
import { createMemoryLimiter, LATE_MS } from "./memory.ts";
import { OtherNodes } from "./others.ts";
import type { LimiterOptions } from "./open.ts";
import { type Life, Presence, type PresenceParts, type Taken } from "./presence.ts";
import type { Place, Used } from "./redis_counts.ts";
import { OutOfReach } from "./redis_link.ts";
import { PREFIX } from "./redis_scripts.ts";
import { checkWish, isAmount } from "./taking.ts";
import { leaseEnd, windowEnd } from "./window.ts";

/** When a client may try again while nothing is admitted, in milliseconds. */
const RETRY_MS = 1_000;

/** Requests looked at by each `take`, for those that nobody has ended. */
const SWEPT = 2;

/** Opens a limiter that counts in Redis, and keeps to what was agreed while Redis is out of reach; be it from the start. */
export function openRedisLimiter(url: Secret, options: LimiterOptions): Promise<Limiter> {
  return openSharedLimiter(url, {
    ...options,
    random: Math.random,
    name: () => crypto.randomUUID().slice(0, 13),
    prefix: PREFIX,
  });
}

/**
 * Opens one of all its parts.
 *
 * Everything that is admitted is counted in the memory of the node as well, whoever has admitted it: a node that has to do
 * without Redis holds its share against that, and tells it to a Redis that comes back empty.
 */
export async function openSharedLimiter(url: Secret, parts: PresenceParts): Promise<Limiter> {
  const requests = new Map<string, Taken>();
  /** What is being taken. */
  const wishes = new Map<string, Promise<Taking>>();
  const own = createMemoryLimiter(parts);
  const owed = new Owed();
  const presence = new Presence(url, { parts, admitted: { requests, own, owed } });
  const others = new OtherNodes({ own, nodes: () => presence.nodes, now: () => presence.now() });
  let hand = requests.values();

  async function takeAnywhere(wish: Wish): Promise<Taking> {
    const answer = await presence.ask(async (life) => {
      try {
        const answer = await life.counts.take(wish);
        if (answer?.taking.admitted) remember(wish, { life, place: answer.place });
        return answer;
      } catch (error) {
        life.doubts.add(wish.id);
        throw error;
      }
    });
    if (answer === undefined) return await takeAlone(wish);
    others.forgetRoom();
    others.note(answer.taking.standings);
    return answer.taking;
  }

  async function takeAlone(wish: Wish): Promise<Taking> {
    const { claims } = wish;
    if (parts.outage === "closed" && claims.some(({ reportOnly }) => !reportOnly)) {
      throw new GatewayError("overloaded", "Cannot count limits now: try again", { retryAfterMs: RETRY_MS });
    }
    others.leaveRoom();
    const shares = sharesOf(claims, presence.nodes);
    const taking = await own.take({ ...wish, claims: shares });
    if (taking.admitted) remember(wish);
    return ofLimits(taking, { claims, shares });
  }

  /** @param where absent: it was admitted without Redis */
  function remember({ id, claims, forMs }: Wish, where?: { life: Life; place: Place }): void {
    const now = presence.now();
    const ends = { windowEnd: windowEnd(now), leaseEnd: leaseEnd(now, forMs) };
    const request = { id, claims, ...ends, ...where, counted: where !== undefined };
    requests.set(id, request);
    if (where !== undefined) own.take({ id, claims: onlyCounted(claims), forMs });
    presence.follow(request);
  }

  /** @returns how its limits stand afterwards, or `undefined` where the id is not known */
  async function finish(id: string, used: Used): Promise<Standing[] | undefined> {
    await wishes.get(id)?.catch(() => {});
    await presence.settled();
    const request = requests.get(id);
    if (request === undefined) return undefined;
    requests.delete(id);
    const standings = await tellEnd(request, used);
    // Not before: should Redis have lost everything, the request is told to it as it was, and ends there then.
    if (used === "undone") await own.undo(id);
    else endOwn(id, used);
    if (standings !== undefined) others.note(standings);
    return standings ?? await standAlone(request.claims);
  }

  function endOwn(id: string, used: Used): void {
    try {
      own.end(id, typeof used === "number" ? used : NaN);
    } catch {
      // Of an unknown number the estimate stands.
    }
  }

  async function tellEnd(request: Taken, used: Used): Promise<Standing[] | undefined> {
    const { id, claims } = request;
    const standings = await presence.ask(async (life) => {
      requests.delete(id);
      if (request.life !== life || request.place === undefined) throw new OutOfReach("elsewhere");
      const standings = await life.counts.end(id, { claims, place: request.place, used });
      // It comes back with the node, and ends then.
      if (standings === undefined) requests.set(id, request);
      return standings;
    });
    requests.delete(id);
    if (standings !== undefined) return standings;
    const { life, place } = request;
    if (life !== undefined && place !== undefined) life.ends.set(id, { claims, place, used });
    else if (!request.counted) owed.add(claims, { used, end: request.windowEnd });
    return undefined;
  }

  async function standAlone(claims: readonly Claim[]): Promise<Standing[]> {
    return standingsOfLimits(await own.standings(sharesOf(claims, presence.nodes)), claims);
  }

  /** Ends what nobody has ended in time, and nobody will. */
  function sweep(): void {
    for (let count = 0; count < SWEPT; count++) {
      const { done, value } = hand.next();
      // An iterator that has come to its end stays there.
      if (done === true) hand = requests.values();
      else if (value.leaseEnd + LATE_MS < presence.now()) void finish(value.id, "unknown");
    }
  }

  await presence.open();
  return {
    async take(wish) {
      const { id, claims } = wish;
      checkWish(wish, { known: requests.has(id) || wishes.has(id) });
      if (claims.length === 0) return { admitted: true, standings: [], over: [], retryAfterMs: 0 };
      sweep();
      const taking = takeAnywhere(wish);
      wishes.set(id, taking);
      try {
        return await taking;
      } finally {
        wishes.delete(id);
      }
    },
    async end(id, tokens) {
      const isNumber = isAmount(tokens);
      const standings = await finish(id, isNumber ? tokens : "unknown");
      if (standings === undefined) return [];
      if (!isNumber) throw new RangeError(`Cannot end "${id}": ${tokens} is no number of tokens`);
      return standings;
    },
    async undo(id) {
      await finish(id, "undone");
    },
    standings: async (claims) =>
      await presence.ask(({ counts }) => counts.standings(claims)) ?? await standAlone(claims),
    get healthy() {
      return presence.healthy;
    },
    get othersHeardMs() {
      return presence.othersHeardMs;
    },
    close: () => presence.close(),
  };
}
