/**
 * Keeps recent responses of all API keys in memory, bounded in bytes and time. If they exceed the bound, the least
 * recently used response of the key with the most bytes is evicted, so that a key that stores much evicts its own
 * responses.
 */

/** A stored response that later requests of its key may refer to. */
export interface KeptResponse {
  id: string;
  /** The response whose input precedes `input`. `withOutput`: its output precedes `input`, too. */
  base?: { id: string; withOutput: boolean };
  /** Input items after those of `base`: JSON texts in UTF-8, separated by commas. */
  input: Uint8Array<ArrayBuffer>;
  /** Output items, in the same form. */
  output: Uint8Array<ArrayBuffer>;
  /** Output items with an id. */
  items: readonly KeptItem[];
}

/** Position of an output item in `KeptResponse.output`, in bytes. */
export interface KeptItem {
  id: string;
  start: number;
  end: number;
}

/** Bounds of the stored responses. */
export interface RecallLimits {
  /** Lifetime of a response after its last use, in minutes. */
  minutes: number;
  /** Maximum number of megabytes (1024 * 1024 bytes) of all responses. */
  megabytes: number;
}

/** Options of `RecentResponses`. */
export interface RecentResponsesOptions {
  /** Monotonic clock in milliseconds. */
  monotonic: () => number;
  /** Called with each response that this process has created and that is evicted before its lifetime ends. */
  dropped?: (owner: string, response: KeptResponse) => void;
}

interface Entry {
  readonly owner: string;
  /** API key that the bytes count for. */
  readonly keyId: string;
  readonly response: KeptResponse;
  readonly bytes: number;
  /** True if this process has created it. */
  readonly isOwn: boolean;
  /** Monotonic time in milliseconds. */
  expiresAt: number;
}

/** Responses of one API key. */
interface Account {
  /** Entries by owner and id, the least recently used first. */
  readonly entries: Map<string, Entry>;
  bytes: number;
}

/** Estimated memory overhead of an entry, and of each of its output items, in bytes. */
const ENTRY_BYTES = 512;
const ITEM_BYTES = 256;

/** Longest delay of a JavaScript timer, in milliseconds. */
const MAX_DELAY_MS = 2 ** 31 - 1;

/** Responses by owner and id. An owner finds only its own responses. */
export class RecentResponses {
  /** Entries by owner and id, the least recently used first. */
  readonly #entries = new Map<string, Entry>();
  /** Accounts by API key. A key without responses has none. */
  readonly #accounts = new Map<string, Account>();
  /** Entries by owner and id of their output items. */
  readonly #items = new Map<string, Entry>();
  readonly #options: RecentResponsesOptions;
  #limits: RecallLimits;
  #bytes = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(limits: RecallLimits, options: RecentResponsesOptions) {
    this.#limits = limits;
    this.#options = options;
  }

  /** Estimated size of all responses, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Changes the bounds, and evicts responses beyond them. */
  configure(limits: RecallLimits): void {
    this.#limits = limits;
    this.#evict();
  }

  /**
   * Stores a response.
   * @param options `isOwn`: whether this process has created it; `keyId`: the API key that it counts for, by default
   * the owner
   * @returns false if it was not stored, or was evicted at once, because it is too large
   */
  put(
    owner: string,
    response: KeptResponse,
    { isOwn = false, keyId = owner }: { isOwn?: boolean; keyId?: string } = {},
  ): boolean {
    const key = keyOf(owner, response.id);
    this.#remove(key);
    const entry = { owner, keyId, response, bytes: bytesOf(owner, response), isOwn, expiresAt: this.#expiry() };
    if (entry.bytes > this.#maxBytes) return false;
    this.#add(key, entry);
    for (const { id } of response.items) this.#items.set(keyOf(owner, id), entry);
    this.#evict();
    this.#startTimer();
    return this.#entries.has(key);
  }

  /** True if a response is stored. Does not mark it as used. */
  has(owner: string, id: string): boolean {
    return this.#entries.has(keyOf(owner, id));
  }

  /** Finds a response, and marks it as used. */
  find(owner: string, id: string): KeptResponse | undefined {
    return this.#markUsed(this.#entries.get(keyOf(owner, id)));
  }

  /** Finds the response with an output item, and marks it as used. */
  findByItem(owner: string, itemId: string): KeptResponse | undefined {
    return this.#markUsed(this.#items.get(keyOf(owner, itemId)));
  }

  remove(owner: string, id: string): void {
    this.#remove(keyOf(owner, id));
  }

  /** Deletes all responses. */
  close(): void {
    this.#entries.clear();
    this.#accounts.clear();
    this.#items.clear();
    this.#bytes = 0;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  get #maxBytes(): number {
    return this.#limits.megabytes * 1024 * 1024;
  }

  #expiry(): number {
    return this.#options.monotonic() + this.#limits.minutes * 60_000;
  }

  /** Makes an entry the most recently used one, unless it has expired. */
  #markUsed(entry: Entry | undefined): KeptResponse | undefined {
    if (entry === undefined) return undefined;
    if (entry.expiresAt <= this.#options.monotonic()) {
      // Not at every use: the iteration passes the gaps of all used entries before it finds the first one.
      this.#evict();
      return undefined;
    }
    const key = keyOf(entry.owner, entry.response.id);
    this.#subtract(key, entry);
    entry.expiresAt = this.#expiry();
    this.#add(key, entry);
    return entry.response;
  }

  /** Adds an entry as the most recently used one. */
  #add(key: string, entry: Entry): void {
    let account = this.#accounts.get(entry.keyId);
    if (account === undefined) this.#accounts.set(entry.keyId, account = { entries: new Map(), bytes: 0 });
    account.entries.set(key, entry);
    account.bytes += entry.bytes;
    this.#entries.set(key, entry);
    this.#bytes += entry.bytes;
  }

  #subtract(key: string, { keyId, bytes }: Entry): void {
    this.#entries.delete(key);
    this.#bytes -= bytes;
    const account = this.#accounts.get(keyId);
    account?.entries.delete(key);
    if (account?.entries.size === 0) this.#accounts.delete(keyId);
    else if (account !== undefined) account.bytes -= bytes;
  }

  #remove(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#subtract(key, entry);
    for (const { id } of entry.response.items) {
      const item = keyOf(entry.owner, id);
      // A later response may have an item of the same id.
      if (this.#items.get(item) === entry) this.#items.delete(item);
    }
  }

  /** Evicts responses beyond the bounds. Entries expire in the order of their use, unless the lifetime was changed. */
  #evict(): void {
    const now = this.#options.monotonic();
    for (const [key, { expiresAt }] of this.#entries) {
      if (expiresAt > now) break;
      this.#remove(key);
    }
    while (this.#bytes > this.#maxBytes) {
      const [oldest] = this.#largestAccount()?.entries ?? [];
      if (oldest === undefined) return;
      const [key, { owner, response, isOwn }] = oldest;
      this.#remove(key);
      if (isOwn) this.#options.dropped?.(owner, response);
    }
  }

  #largestAccount(): Account | undefined {
    let largest: Account | undefined;
    for (const account of this.#accounts.values()) if (account.bytes > (largest?.bytes ?? 0)) largest = account;
    return largest;
  }

  /** Starts a timer for the next expiry, unless one runs already. */
  #startTimer(): void {
    const [first] = this.#entries.values();
    if (this.#timer !== undefined || first === undefined) return;
    const delay = Math.min(Math.max(first.expiresAt - this.#options.monotonic(), 1), MAX_DELAY_MS);
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#evict();
      this.#startTimer();
    }, delay);
    Deno.unrefTimer(this.#timer);
  }
}

/** Returns the key of a response or an item. The separator is a line break, which owners do not contain. */
function keyOf(owner: string, id: string): string {
  return `${owner}\n${id}`;
}

/** Estimates the memory of a response. */
function bytesOf(owner: string, { id, base, input, output, items }: KeptResponse): number {
  // A character takes up to two bytes; owner and id are part of two keys.
  let bytes = ENTRY_BYTES + input.byteLength + output.byteLength + 2 * (2 * owner.length + 2 * id.length);
  if (base !== undefined) bytes += 2 * base.id.length;
  for (const item of items) bytes += ITEM_BYTES + 2 * (owner.length + 2 * item.id.length);
  return bytes;
}
