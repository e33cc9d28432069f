/** Recent responses: in this process, and in Redis if nodes share one. */
import { type KeptResponse, type RecallLimits, RecentResponses } from "./recent_responses.ts";

/** Owner of responses. */
export interface ResponseOwner {
  keyId: string;
  /** The API key, which encrypts responses that leave the process. */
  secret: string;
}

/** Responses shared by nodes. */
export interface SharedResponses {
  /** Stores a response for a time in milliseconds. Resolves when other nodes can find it, or after a failure. */
  put(owner: ResponseOwner, response: KeptResponse, forMs: number): Promise<void>;
  /** Finds a response and renews its lifetime. @throws {GatewayError} `overloaded` without an answer of the store */
  find(owner: ResponseOwner, id: string, forMs: number): Promise<KeptResponse | undefined>;
  /**
   * Finds the response with an output item and renews its lifetime.
   * @throws {GatewayError} `overloaded` without an answer of the store
   */
  findByItem(owner: ResponseOwner, itemId: string, forMs: number): Promise<KeptResponse | undefined>;
  /** Deletes a response that its node evicted, so that Redis has the same bounds as the nodes. */
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

/** Recent responses of every key. */
export class Recall {
  readonly #recent: RecentResponses;
  readonly #shared: SharedResponses | undefined;
  #limits: RecallLimits | null;

  constructor({ limits, monotonic, shared }: RecallParts) {
    this.#limits = limits;
    this.#shared = shared;
    this.#recent = new RecentResponses(limits ?? { minutes: 0, megabytes: 0 }, {
      monotonic,
      ...(shared !== undefined && { dropped: (owner, response) => shared.drop(owner, response) }),
    });
  }

  /** `null`: responses are not stored. */
  get limits(): RecallLimits | null {
    return this.#limits;
  }

  /** Accounted size of the responses in this process, in bytes. */
  get bytes(): number {
    return this.#recent.bytes;
  }

  configure(limits: RecallLimits | null): void {
    this.#limits = limits;
    if (limits === null) this.#recent.close();
    else this.#recent.configure(limits);
  }

  /** Stores a response. @returns resolves when other nodes can find it; absent: there are none */
  put(owner: ResponseOwner, response: KeptResponse): Promise<void> | undefined {
    if (this.#limits === null) return undefined;
    const isKept = this.#recent.put(owner.keyId, response, { isOwn: true });
    return isKept ? this.#shared?.put(owner, response, this.#forMs) : undefined;
  }

  /** Finds this owner's response. @throws {GatewayError} `overloaded` if another node may have it */
  async find(owner: ResponseOwner, id: string): Promise<KeptResponse | undefined> {
    if (this.#limits === null) return undefined;
    return this.#recent.find(owner.keyId, id) ?? this.#adopt(owner, await this.#shared?.find(owner, id, this.#forMs));
  }

  /** Finds this owner's response with an output item. @throws {GatewayError} `overloaded` if another node may have it */
  async findByItem(owner: ResponseOwner, itemId: string): Promise<KeptResponse | undefined> {
    if (this.#limits === null) return undefined;
    return this.#recent.findByItem(owner.keyId, itemId) ??
      this.#adopt(owner, await this.#shared?.findByItem(owner, itemId, this.#forMs));
  }

  /** Opens the responses of one connection, which end with it. They count towards the common limits, and for their key. */
  openLocal(keyId: string): LocalResponses {
    return new LocalResponses(this.#recent, keyId);
  }

  /** Deletes everything in this process. */
  async close(): Promise<void> {
    this.#recent.close();
    await this.#shared?.close();
  }

  get #forMs(): number {
    return (this.#limits?.minutes ?? 0) * 60_000;
  }

  #adopt({ keyId }: ResponseOwner, found: KeptResponse | undefined): KeptResponse | undefined {
    if (found !== undefined && this.#limits !== null) this.#recent.put(keyId, found);
    return found;
  }
}

/** Responses visible to one connection only. */
export class LocalResponses {
  readonly #recent: RecentResponses;
  readonly #keyId: string;
  readonly #owner = crypto.randomUUID();
  readonly #ids = new Set<string>();

  constructor(recent: RecentResponses, keyId: string) {
    this.#recent = recent;
    this.#keyId = keyId;
  }

  put(response: KeptResponse): void {
    this.#recent.put(this.#owner, response, { keyId: this.#keyId });
    this.#ids.add(response.id);
  }

  find(id: string): KeptResponse | undefined {
    return this.#recent.find(this.#owner, id);
  }

  findByItem(itemId: string): KeptResponse | undefined {
    return this.#recent.findByItem(this.#owner, itemId);
  }

  /** Deletes everything. */
  close(): void {
    for (const id of this.#ids) this.#recent.remove(this.#owner, id);
    this.#ids.clear();
  }
}
