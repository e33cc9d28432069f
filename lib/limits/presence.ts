/** A node's presence in Redis: its connection, its signs of life, and how it comes back. */
import type { Secret } from "../secret.ts";
import type { Owed } from "./alone.ts";
import type { Claim } from "./limiter.ts";
import type { Counted, MemoryLimiter } from "./memory.ts";
import type { LimiterOptions } from "./open.ts";
import { type Counts, createCounts, type Place, type Pour, type Put, type Used } from "./redis_counts.ts";
import { type Link, openLink, OutOfReach } from "./redis_link.ts";
import { BUCKET_MS } from "./window.ts";

/** What a presence is made of. */
export interface PresenceParts extends LimiterOptions {
  /** A number from 0 up to 1. */
  random: () => number;
  /** A name that nobody else has. */
  name: () => string;
  /** Prefix of all keys, with a hash tag. */
  prefix: string;
  /** A clock in place of the server's, for tests. */
  clock?: () => number;
}

/** A life of the node in Redis: from when it is known there until it is lost sight of. The next one has another name. */
export interface Life {
  readonly node: string;
  readonly counts: Counts;
  /** How far the clock of the server is ahead of the node's, in milliseconds. */
  aheadMs: number;
  /** From when on the number of nodes can be believed: those that came back as well have been heard of. */
  readonly settledAt: number;
  /** Takings whose outcome nobody knows: they are undone. */
  readonly doubts: Set<string>;
  /** What has ended, and Redis has not been told, or nobody knows whether it has. */
  readonly ends: Map<string, { claims: readonly Claim[]; place: Place; used: Used }>;
}

/** A request that has taken. */
export interface Taken {
  readonly id: string;
  readonly claims: readonly Claim[];
  /** When its requests and tokens leave their windows, and its slots are free whatever happens: by the clock of the node. */
  readonly windowEnd: number;
  readonly leaseEnd: number;
  /** The life in which it was put into Redis, and where in time; absent where it never was. */
  life?: Life;
  place?: Place;
  /** Whether its requests and tokens are counted in Redis. */
  counted: boolean;
}

/** What a node has admitted. */
export interface Admitted {
  /** What runs, by its id. */
  readonly requests: ReadonlyMap<string, Taken>;
  /** All of it, by the clock of the node. */
  readonly own: Pick<MemoryLimiter, "counted">;
  /** What has ended and Redis does not know. */
  readonly owed: Owed;
}

/** Longest time between two signs of life, in milliseconds; less where a node is soon taken to be over. */
const BEAT_MS = 5_000;
const BEATS_PER_LIFE = 3;

/** The same where nodes tell each other whether they reach a store, in milliseconds. */
const STORE_BEAT_MS = 2_000;

/** Time between two looks whether Redis is there again, in milliseconds, give or take a fifth. */
const PROBE_MS = 500;

/** What goes to Redis in one script when the node comes back. */
const PUT_AT_ONCE = 200;

/** How often a question is asked of a Redis that takes the node to be over, again and again. */
const TRIES = 3;

/** The presence of one node. */
export class Presence {
  readonly #url: Secret;
  readonly #parts: PresenceParts;
  readonly #admitted: Admitted;
  #link: Link | undefined;
  /** Connections that are being made or ended. */
  readonly #moving = new Set<Promise<void>>();
  #life: Life | undefined;
  /** Lives whose remains are still in Redis. */
  readonly #pasts = new Set<Life>();
  /** Set while the node, which Redis took to be over, comes back. */
  #rejoining: Promise<void> | undefined;
  #epoch: string | undefined;
  #nodes = 1;
  /** When the store answered another node last, by the clock of the node; absent where that is not known. */
  #othersHeardAt: number | undefined;
  #downSince: number | undefined;
  #probe: ReturnType<typeof setTimeout> | undefined;
  #beat: ReturnType<typeof setTimeout> | undefined;
  #closed = false;

  constructor(url: Secret, { parts, admitted }: { parts: PresenceParts; admitted: Admitted }) {
    this.#url = url;
    this.#parts = parts;
    this.#admitted = admitted;
  }

  /** Whether Redis counts. */
  get healthy(): boolean {
    return this.#life !== undefined || this.#rejoining !== undefined;
  }

  /** Last known number of nodes, at least 1. */
  get nodes(): number {
    return this.#nodes;
  }

  /** Milliseconds since the store that nodes share answered another node last, as far as is known. */
  get othersHeardMs(): number | undefined {
    return this.#othersHeardAt === undefined ? undefined : this.now() - this.#othersHeardAt;
  }

  /** Tries to reach Redis once, and goes on trying by itself. */
  async open(): Promise<void> {
    await this.#connect();
    this.#beatLater();
  }

  /** Frees what the node holds in Redis, and ends the connection. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#probe);
    clearTimeout(this.#beat);
    await this.ask(async ({ counts }) => {
      await counts.retire([]);
      return true;
    });
    this.#life = undefined;
    this.#leave();
    await Promise.all(this.#moving);
  }

  /** Resolves when the node does not come back just now. */
  async settled(): Promise<void> {
    if (this.#rejoining !== undefined) await this.#rejoining;
  }

  /**
   * Asks in the life that the node has.
   * @param question answers `undefined` where the node is taken to be over: it comes back, and asks again
   * @returns `undefined` where Redis is out of reach
   */
  async ask<Result>(question: (life: Life) => Promise<Result | undefined>): Promise<Result | undefined> {
    for (let tries = 0; tries < TRIES; tries++) {
      await this.settled();
      const life = this.#life;
      if (life === undefined) return undefined;
      try {
        const answer = await question(life);
        if (answer !== undefined) return answer;
      } catch (error) {
        if (error instanceof OutOfReach) return undefined;
        throw error;
      }
      await this.#rejoin(life);
    }
    return undefined;
  }

  /** Puts a request into Redis that was admitted while Redis was left or reached. */
  follow(request: Taken): void {
    if (this.#life === undefined || this.#life === request.life) return;
    this.#put(this.#life, [request]).catch(ignoreOutOfReach);
  }

  /** Whole milliseconds of the node's clock. */
  now(): number {
    return Math.floor(this.#parts.monotonic());
  }

  async #connect(): Promise<void> {
    const { prefix, timeoutMs } = this.#parts;
    let link: Link | undefined;
    try {
      link = await openLink(this.#url, { prefix, timeoutMs, lost: (cause) => this.#lose(link, cause) });
      if (this.#closed) return await link.close();
      this.#link = link;
      this.#tellUp(await this.#enter(link));
    } catch (error) {
      if (!(error instanceof OutOfReach)) throw error;
      this.#lose(link, error.message);
    }
  }

  /** From now on Redis is out of reach. */
  #lose(link: Link | undefined, cause: string): void {
    if (this.#closed || link !== this.#link) return;
    if (this.#life !== undefined) this.#pasts.add(this.#life);
    this.#life = undefined;
    this.#othersHeardAt = undefined;
    this.#leave();
    this.#tellDown(cause);
    clearTimeout(this.#probe);
    this.#probe = setTimeout(() => this.#move(this.#connect()), PROBE_MS * (0.8 + 0.4 * this.#parts.random()));
  }

  #leave(): void {
    if (this.#link !== undefined) this.#move(this.#link.close());
    this.#link = undefined;
  }

  #move(moving: Promise<void>): void {
    this.#moving.add(moving);
    void moving.finally(() => this.#moving.delete(moving));
  }

  /** Redis took the node to be over, or does not know it any more. */
  async #rejoin(life: Life): Promise<void> {
    const link = this.#link;
    if (this.#life === life && link !== undefined) {
      this.#life = undefined;
      this.#pasts.add(life);
      this.#rejoining = this.#comeBack(link).finally(() => this.#rejoining = undefined);
    }
    await this.settled();
  }

  async #comeBack(link: Link): Promise<void> {
    try {
      const facts = await this.#enter(link);
      this.#parts.log({ level: "warn", event: "limits_put_back", ...facts });
    } catch (error) {
      if (!(error instanceof OutOfReach)) throw error;
      this.#lose(link, error.message);
    }
  }

  /**
   * Begins a life in Redis. What is left there of those before goes; then the requests that run are put there, even above a
   * limit, and what Redis does not know of what was taken. Requests that come meanwhile are admitted without it.
   */
  async #enter(link: Link): Promise<Entered> {
    const { leaseMs, name } = this.#parts;
    for (const past of this.#pasts) await this.#bury(link, past);
    const node = name();
    const life: Life = {
      node,
      counts: this.#countsOf(link, node),
      aheadMs: 0,
      settledAt: this.now() + leaseMs + BEAT_MS,
      doubts: new Set(),
      ends: new Map(),
    };
    this.#pasts.add(life);
    const { now, nodes, epoch } = await life.counts.join(leaseMs, name());
    this.#nodes = Math.max(this.#nodes, nodes);
    life.aheadMs = now - this.now();
    const isKept = this.#epoch === undefined || this.#epoch === epoch;
    const requests = this.#admitted.requests.size;
    await this.#pour(life, isKept ? this.#admitted.owed.drain(this.now()) : this.#recount());
    for (let rest = this.#without(life); rest.length > PUT_AT_ONCE; rest = this.#without(life)) {
      await this.#put(life, rest.slice(0, PUT_AT_ONCE));
    }
    // In one go: whoever takes from now on comes after the last of them.
    const last = this.#put(life, this.#without(life));
    this.#epoch = epoch;
    this.#life = life;
    this.#pasts.delete(life);
    await last;
    for (const [id, end] of life.ends) {
      life.ends.delete(id);
      await life.counts.end(id, end);
    }
    return { nodes: this.#nodes, requests, counts: isKept ? "kept" : "lost" };
  }

  /** Ends what is to be ended of a life that is over, and frees the rest. */
  async #bury(link: Link, past: Life): Promise<void> {
    const counts = this.#countsOf(link, past.node);
    for (const batch of batches([...past.ends])) {
      await Promise.all(batch.map(([id, end]) => counts.end(id, end)));
    }
    await counts.retire([...past.doubts]);
    this.#pasts.delete(past);
  }

  #countsOf(link: Link, node: string): Counts {
    const { clock } = this.#parts;
    return createCounts({ link, node, ...(clock !== undefined && { clock }) });
  }

  /** All that this node has admitted, for a Redis that has lost it. Its requests are counted with it. */
  #recount(): Counted[] {
    const { requests, own, owed } = this.#admitted;
    owed.drain(this.now());
    for (const request of requests.values()) {
      delete request.place;
      request.counted = true;
    }
    return own.counted().filter(({ unit }) => unit !== "concurrency");
  }

  async #pour(life: Life, counted: readonly Counted[]): Promise<void> {
    const amounts = counted.flatMap(({ name, unit, buckets }): Pour[] =>
      buckets.map(({ end, amount }) => ({ name, unit, bucket: bucketOf(end + life.aheadMs), amount }))
    );
    for (const batch of batches(amounts)) {
      if (!await life.counts.pour(batch)) throw new OutOfReach("forgotten");
    }
  }

  /** What runs and was not put into Redis in this life. */
  #without(life: Life): Taken[] {
    return [...this.#admitted.requests.values()].filter((request) => request.life !== life);
  }

  async #put(life: Life, requests: readonly Taken[]): Promise<void> {
    const puts = requests.map((request): Put => {
      const { id, claims, counted } = request;
      const place = request.place ?? {
        bucket: bucketOf(request.windowEnd + life.aheadMs),
        leaseEnd: bucketOf(request.leaseEnd + life.aheadMs) * BUCKET_MS,
      };
      Object.assign(request, { life, place, counted: true });
      return { id, claims, place, counted };
    });
    if (!await life.counts.put(puts)) throw new OutOfReach("forgotten");
  }

  #beatLater(ms = this.#beatMs()): void {
    if (this.#closed) return;
    this.#beat = setTimeout(async () => {
      let isMore = false;
      try {
        isMore = await this.#tellAlive();
      } finally {
        this.#beatLater(isMore ? 0 : undefined);
      }
    }, ms);
  }

  #beatMs(): number {
    const { leaseMs, storeHeardMs } = this.#parts;
    return Math.min(storeHeardMs === undefined ? BEAT_MS : STORE_BEAT_MS, leaseMs / BEATS_PER_LIFE);
  }

  /** @returns whether to do so again at once */
  async #tellAlive(): Promise<boolean> {
    const answer = await this.ask(({ counts }) => counts.beat(this.#parts.leaseMs, this.#parts.storeHeardMs?.()));
    if (answer === undefined || this.#life === undefined) return false;
    this.#othersHeardAt = answer.othersHeardMs === undefined ? undefined : this.now() - answer.othersHeardMs;
    const isSettled = this.now() >= this.#life.settledAt;
    this.#nodes = isSettled ? answer.nodes : Math.max(this.#nodes, answer.nodes);
    return answer.more;
  }

  #tellDown(cause: string): void {
    if (this.#downSince !== undefined) return;
    this.#downSince = this.now();
    const { outage: policy, log } = this.#parts;
    const share = policy === "local" ? { share: `1/${this.#nodes}` } : {};
    log({ level: "error", event: "limits_store_down", policy, ...share, cause });
  }

  #tellUp(facts: Entered): void {
    if (this.#downSince === undefined) return;
    const outage_ms = this.now() - this.#downSince;
    this.#downSince = undefined;
    this.#parts.log({ level: "warn", event: "limits_store_up", outage_ms, ...facts });
  }
}

/** What a node found when it came back: the nodes, the requests it has put back, and whether Redis had kept its counts. */
type Entered = { nodes: number; requests: number; counts: "kept" | "lost" };

/** The bucket that ends then or next. */
function bucketOf(end: number): number {
  return Math.ceil(end / BUCKET_MS);
}

function batches<Item>(items: readonly Item[]): Item[][] {
  const count = Math.ceil(items.length / PUT_AT_ONCE);
  return Array.from({ length: count }, (_, index) => items.slice(index * PUT_AT_ONCE, (index + 1) * PUT_AT_ONCE));
}

/** What was lost with Redis comes back with it. */
function ignoreOutOfReach(error: unknown): void {
  if (!(error instanceof OutOfReach)) throw error;
}
