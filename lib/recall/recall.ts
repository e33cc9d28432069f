/** Stores recent responses for requests that refer to them: in this process, and in Redis if nodes share one. */
import { type KeptResponse, type RecallLimits, RecentResponses } from "./recent_responses.ts";

/** Owner of responses. */
export interface ResponseOwner {
  keyId: string;
  /** The API key, which encrypts responses that leave the process. */
  secret: string;
}

/** The store of responses that nodes share. */
export interface SharedResponses {
  /**
   * Stores a response for `forMs` milliseconds. Resolves when other nodes can find it, or after a failure, which is
   * logged. Never rejects.
   */
  put(owner: ResponseOwner, response: KeptResponse, forMs: number): Promise<void>;
  /** Finds a response and renews its lifetime. @throws {GatewayError} `overloaded` if the store does not answer */
  find(owner: ResponseOwner, id: string, forMs: number): Promise<KeptResponse | undefined>;
  /**
   * Finds the response with an output item and renews its lifetime.
   * @throws {GatewayError} `overloaded` if the store does not answer
   */
  findByItem(owner: ResponseOwner, itemId: string, forMs: number): Promise<KeptResponse | undefined>;
  /** Renews the lifetime of a response. */
  renew(keyId: string, response: KeptResponse, forMs: number): void;
  /** Deletes a response that its node evicted, so that the nodes' bounds hold for the shared store, too. */
  drop(keyId: string, response: KeptResponse): void;
  close(): Promise<void>;
}

/** Dependencies and limits. */
export interface RecallParts {
  /** `null`: responses are not stored. */
  limits: RecallLimits | null;
  /** Monotonic clock in milliseconds. */
  monotonic: () => number;
  /** Absent: responses are stored in this process only. */
  shared?: SharedResponses | undefined;
}

/**
 * Longest id of a response or an item. Longer ones are neither stored nor looked up, because each would be a key in
 * Redis.
 */
export const MAX_ID_LENGTH = 1_024;

/** The share of its lifetime after which a response that is used in this process is renewed in the shared store. */
const RENEWAL_SHARE = 0.1;

/** Recent responses of all API keys. */
export class Recall {
  readonly #recent: RecentResponses;
  readonly #shared: SharedResponses | undefined;
  readonly #monotonic: () => number;
  /** When responses of this process were last renewed in the shared store. */
  readonly #renewedAt = new WeakMap<KeptResponse, number>();
  #limits: RecallLimits | null;

  constructor({ limits, monotonic, shared }: RecallParts) {
    this.#limits = limits;
    this.#shared = shared;
    this.#monotonic = monotonic;
    this.#recent = new RecentResponses(limits ?? { minutes: 0, megabytes: 0 }, {
      monotonic,
      ...(shared !== undefined && { dropped: (owner, response) => shared.drop(owner, response) }),
    });
  }

  /** Limits of the responses in this process; `null`: responses are not stored. */
  get limits(): RecallLimits | null {
    return this.#limits;
  }

  /** Accounted size of the responses in this process, in bytes. */
  get bytes(): number {
    return this.#recent.bytes;
  }

  /** Changes the limits. @param limits `null`: deletes all responses in this process, and stores no others */
  configure(limits: RecallLimits | null): void {
    this.#limits = limits;
    if (limits === null) this.#recent.close();
    else this.#recent.configure(limits);
  }

  /** Stores a response. Returns a promise that resolves when other nodes can find it; undefined if there are none. */
  put(owner: ResponseOwner, response: KeptResponse): Promise<void> | undefined {
    if (this.#limits === null || response.id.length > MAX_ID_LENGTH) return undefined;
    const isKept = this.#recent.put(owner.keyId, response, { isOwn: true });
    this.#renewedAt.set(response, this.#monotonic());
    return isKept ? this.#shared?.put(owner, response, this.#forMs) : undefined;
  }

  /** True if this process has a response of this key. */
  has(keyId: string, id: string): boolean {
    return this.#recent.has(keyId, id);
  }

  /** Finds a response of this owner. @throws {GatewayError} `overloaded` if Redis does not answer and may have it */
  async find(owner: ResponseOwner, id: string): Promise<KeptResponse | undefined> {
    if (this.#limits === null || id.length > MAX_ID_LENGTH) return undefined;
    return this.#renew(owner, this.#recent.find(owner.keyId, id)) ??
      this.#storeLocally(owner, await this.#shared?.find(owner, id, this.#forMs));
  }

  /**
   * Finds the response of this owner that has an output item.
   * @throws {GatewayError} `overloaded` if Redis does not answer and may have it
   */
  async findByItem(owner: ResponseOwner, itemId: string): Promise<KeptResponse | undefined> {
    if (this.#limits === null || itemId.length > MAX_ID_LENGTH) return undefined;
    return this.#renew(owner, this.#recent.findByItem(owner.keyId, itemId)) ??
      this.#storeLocally(owner, await this.#shared?.findByItem(owner, itemId, this.#forMs));
  }

  /**
   * Opens responses that only one connection uses. They count towards the limits, as responses of the connection's key.
   */
  openLocal(keyId: string): LocalResponses {
    return new LocalResponses(this.#recent, keyId);
  }

  /** Deletes all responses in this process, and closes the connection to Redis. */
  async close(): Promise<void> {
    this.#recent.close();
    await this.#shared?.close();
  }

  get #forMs(): number {
    return (this.#limits?.minutes ?? 0) * 60_000;
  }

  /** Renews a response of this process in Redis, too: other nodes, or this one after a restart, may need it. */
  #renew({ keyId }: ResponseOwner, response: KeptResponse | undefined): KeptResponse | undefined {
    if (response === undefined || this.#shared === undefined) return response;
    const now = this.#monotonic();
    if (now - (this.#renewedAt.get(response) ?? now) < this.#forMs * RENEWAL_SHARE) return response;
    this.#renewedAt.set(response, now);
    this.#shared.renew(keyId, response, this.#forMs);
    return response;
  }

  /** Stores a response from Redis in this process, too. */
  #storeLocally({ keyId }: ResponseOwner, response: KeptResponse | undefined): KeptResponse | undefined {
    if (response === undefined || this.#limits === null) return response;
    this.#renewedAt.set(response, this.#monotonic());
    this.#recent.put(keyId, response);
    return response;
  }
}

/** Smallest value of `LocalResponses.#maxIds`. */
const MIN_SWEPT_IDS = 1_000;

/** Responses that only one connection can find. */
export class LocalResponses {
  readonly #recent: RecentResponses;
  readonly #keyId: string;
  readonly #owner = crypto.randomUUID();
  /** Ids of the responses; undefined after the end of the connection. */
  #ids: Set<string> | undefined = new Set();
  /** Number of ids above which those of evicted responses are dropped. */
  #maxIds = MIN_SWEPT_IDS;

  constructor(recent: RecentResponses, keyId: string) {
    this.#recent = recent;
    this.#keyId = keyId;
  }

  /** Stores a response, unless the connection has ended: an answer may be read to its end for the bill. */
  put(response: KeptResponse): void {
    if (this.#ids === undefined) return;
    this.#recent.put(this.#owner, response, { keyId: this.#keyId });
    this.#ids.add(response.id);
    if (this.#ids.size <= this.#maxIds) return;
    this.#ids = new Set([...this.#ids].filter((id) => this.has(id)));
    this.#maxIds = Math.max(MIN_SWEPT_IDS, 2 * this.#ids.size);
  }

  has(id: string): boolean {
    return this.#recent.has(this.#owner, id);
  }

  find(id: string): KeptResponse | undefined {
    return this.#recent.find(this.#owner, id);
  }

  findByItem(itemId: string): KeptResponse | undefined {
    return this.#recent.findByItem(this.#owner, itemId);
  }

  /** Deletes the responses of the connection. */
  close(): void {
    for (const id of this.#ids ?? []) this.#recent.remove(this.#owner, id);
    this.#ids = undefined;
  }
}
