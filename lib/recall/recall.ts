/** The memory of recent responses: in this process, and in Redis where nodes share one. */
import { type KeptResponse, type RecallLimits, RecentResponses } from "./recent_responses.ts";

/** Owner of responses. */
export interface ResponseOwner {
  keyId: string;
  /** The API key itself, which encrypts responses that leave the process. */
  secret: string;
}

/** Responses that nodes share. No method rejects. */
export interface SharedResponses {
  /** Keeps a response for a time, in milliseconds. Resolves when other nodes can find it, or cannot. */
  put(owner: ResponseOwner, response: KeptResponse, forMs: number): Promise<void>;
  /** Finds a response and keeps it for the time again. */
  find(owner: ResponseOwner, id: string, forMs: number): Promise<KeptResponse | undefined>;
  /** Finds the response that has an output item, likewise. */
  findByItem(owner: ResponseOwner, itemId: string, forMs: number): Promise<KeptResponse | undefined>;
  /** Forgets a response that its node has no room for, so that Redis is bounded like the nodes. */
  drop(keyId: string, response: KeptResponse): void;
  close(): Promise<void>;
}

/** Parts of the memory. */
export interface RecallParts {
  /** `null`: nothing is kept. */
  limits: RecallLimits | null;
  /** A monotonic clock, in milliseconds. */
  monotonic: () => number;
  /** Absent: this process alone. */
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

  /** `null`: nothing is kept. */
  get limits(): RecallLimits | null {
    return this.#limits;
  }

  /** Counted size of the responses in this process, in bytes. */
  get bytes(): number {
    return this.#recent.bytes;
  }

  /** Applies other limits. */
  configure(limits: RecallLimits | null): void {
    this.#limits = limits;
    if (limits === null) this.#recent.close();
    else this.#recent.configure(limits);
  }

  /** Keeps a response. @returns resolves when other nodes can find it; absent: there are none */
  put(owner: ResponseOwner, response: KeptResponse): Promise<void> | undefined {
    if (this.#limits === null) return undefined;
    const isKept = this.#recent.put(owner.keyId, response, { isOwn: true });
    return isKept ? this.#shared?.put(owner, response, this.#forMs) : undefined;
  }

  /** Finds a response of this owner. */
  async find(owner: ResponseOwner, id: string): Promise<KeptResponse | undefined> {
    if (this.#limits === null) return undefined;
    return this.#recent.find(owner.keyId, id) ?? this.#adopt(owner, await this.#shared?.find(owner, id, this.#forMs));
  }

  /** Finds the response of this owner that has an output item. */
  async findByItem(owner: ResponseOwner, itemId: string): Promise<KeptResponse | undefined> {
    if (this.#limits === null) return undefined;
    return this.#recent.findByItem(owner.keyId, itemId) ??
      this.#adopt(owner, await this.#shared?.findByItem(owner, itemId, this.#forMs));
  }

  /** The memory of one connection, which ends with it. Its responses count towards the limits of all. */
  openLocal(): LocalResponses {
    return new LocalResponses(this.#recent);
  }

  /** Forgets everything in this process. */
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

/** Responses that one connection alone can find. */
export class LocalResponses {
  readonly #recent: RecentResponses;
  readonly #owner = crypto.randomUUID();
  readonly #ids = new Set<string>();

  constructor(recent: RecentResponses) {
    this.#recent = recent;
  }

  put(response: KeptResponse): void {
    this.#recent.put(this.#owner, response);
    this.#ids.add(response.id);
  }

  find(id: string): KeptResponse | undefined {
    return this.#recent.find(this.#owner, id);
  }

  findByItem(itemId: string): KeptResponse | undefined {
    return this.#recent.findByItem(this.#owner, itemId);
  }

  /** Forgets everything. */
  close(): void {
    for (const id of this.#ids) this.#recent.remove(this.#owner, id);
    this.#ids.clear();
  }
}
