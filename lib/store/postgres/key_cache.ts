/** In-memory cache of keys, which reads only unknown keys from the database. */
import type { KeyChange, KeyRecord, KeyStore } from "../keys.ts";
import type { ChangeOrigin } from "../operators.ts";
import type { Changes } from "./changes.ts";
import { inTime, isOutOfReach } from "./client.ts";
import { createReadQueue } from "./read_queue.ts";
import type { ReadKey } from "./keys.ts";

/** Age of the change feed above which keys are read again, in milliseconds. */
const FRESH_MS = 2_000;

/** Timeout of a read, in milliseconds. */
const READ_MS = 2_000;

/** Most cached keys; the least recently used are evicted. */
const MAX_KEYS = 100_000;

/** Most cached unknown hashes; the oldest are evicted. */
const MAX_UNKNOWN = 1_000;

/** Most keys whose last use waits to be written. */
const MAX_USES = 100_000;

/** Parts of the key cache. */
export interface KeyCacheParts {
  /** The keys in the database. */
  keys: Omit<KeyStore, "findByHash">;
  /** Reads a key by its current hash, or by a previous hash that is valid at `now`. */
  find: (lookup: KeyLookup) => Promise<ReadKey | undefined>;
  changes: Changes;
  /** Keys to cache at start, usable during an outage before any request used them. */
  first?: readonly ReadKey[];
  /** Age of the change feed up to which cached keys are valid during an outage, in milliseconds. */
  keyAgeMs: number;
  /** Most keys in memory; absent: 100,000. */
  maxKeys?: number;
}

/** Stands for any key in place of an id. No key has it. */
const ANY = "";

/** Higher than any change number, so it invalidates every earlier read. */
const LAST = 2n ** 63n;

interface KeyLookup {
  hash: string;
  now: number;
}

/** A cached key. */
interface Known extends ReadKey {
  /** It may have changed unnoticed: it is read again, and used as it is only during an outage. */
  isDoubtful: boolean;
}

/**
 * Caches the keys of a database. Changes through the cache apply at once, those of other nodes when the feed reports
 * them. While the database is unreachable, `findByHash` returns cached keys for up to `keyAgeMs`; it rejects for other
 * keys, and for all keys after that time.
 */
export function cacheKeys(parts: KeyCacheParts): KeyStore {
  const cached = new CachedKeys(parts);
  return {
    ...parts.keys,
    findByHash: (hash, now) => cached.findByHash(hash, now),
    add: (key, origin) => cached.add(key, origin),
    change: (id, changes, origin) => cached.change(id, changes, origin),
    revoke: (id, at, origin) => cached.revoke(id, at, origin),
    rotate: (id, to, origin) => cached.rotate(id, to, origin),
    touch: (used) => cached.touch(used),
  };
}

class CachedKeys implements Pick<KeyStore, "findByHash" | "add" | "change" | "revoke" | "rotate" | "touch"> {
  readonly #parts: KeyCacheParts;
  readonly #maxKeys: number;
  /** By id, the most recently used last. */
  readonly #known = new Map<string, Known>();
  /** Ids by hash, including previous hashes. */
  readonly #ids = new Map<string, string>();
  /** Hashes that no key has, as of the last change of any key. */
  readonly #unknown = new Set<string>();
  /** Reads in progress by hash, shared by concurrent requests for the same key. */
  readonly #reading = new Map<string, Promise<KeyRecord | undefined>>();
  /**
   * For each read in progress, the ids and change numbers of keys that changed since it began: its result may predate
   * them.
   */
  readonly #missing = new Set<Map<string, bigint>>();
  /** Keys being changed by this node, by id: the feed's report may predate the change. */
  readonly #changing = new Map<string, symbol>();
  readonly #readQueue = createReadQueue();
  /** Last uses that are not yet written. */
  #uses = new Map<string, number>();

  constructor(parts: KeyCacheParts) {
    this.#parts = parts;
    this.#maxKeys = parts.maxKeys ?? MAX_KEYS;
    parts.changes.watch({ keys: (changed) => this.#applyChanges(changed), up: () => void this.#flush() });
    for (const key of parts.first ?? []) this.#keepReady(key);
  }

  async findByHash(hash: string, now: number): Promise<KeyRecord | undefined> {
    const lookup = { hash, now };
    const key = this.#recall(hash);
    if (this.#unknown.has(hash) && this.#parts.changes.isUp && this.#parts.changes.ageMs() <= FRESH_MS) {
      return undefined;
    }
    if (key === undefined) return validKey(await this.#readUnknown(lookup), lookup);
    const isSure = !key.isDoubtful && this.#parts.changes.ageMs() <= FRESH_MS;
    return validKey(isSure ? key.record : await this.#readKnown(key, lookup), lookup);
  }

  async add(key: KeyRecord, origin?: ChangeOrigin): Promise<boolean> {
    const isAdded = await this.#change(key.id, () => this.#parts.keys.add(key, origin));
    if (isAdded && this.#known.size < this.#maxKeys) {
      this.#remember({ record: structuredClone(key), changed: 0n }, true);
    }
    return isAdded;
  }

  change(id: string, changes: KeyChange, origin?: ChangeOrigin): Promise<boolean> {
    return this.#change(id, () => this.#parts.keys.change(id, changes, origin));
  }

  revoke(id: string, at: number, origin?: ChangeOrigin): Promise<boolean> {
    return this.#change(id, () => this.#parts.keys.revoke(id, at, origin));
  }

  rotate(id: string, to: { hash: string; until: number }, origin?: ChangeOrigin): Promise<boolean> {
    return this.#change(id, () => this.#parts.keys.rotate(id, to, origin));
  }

  async touch(used: ReadonlyMap<string, number>): Promise<void> {
    for (const [id, at] of used) {
      const key = this.#known.get(id);
      if (key !== undefined) key.record = { ...key.record, lastUsedAt: Math.max(key.record.lastUsedAt ?? 0, at) };
    }
    this.#keepUses(used);
    if (this.#parts.changes.isUp) await this.#flush();
  }

  #applyChanges(changed: readonly ReadKey[] | "all"): void {
    if (changed === "all") {
      for (const key of this.#known.values()) key.isDoubtful = true;
      this.#note(ANY, LAST);
      return;
    }
    for (const key of changed) {
      this.#note(key.record.id, key.changed);
      const old = this.#known.get(key.record.id);
      // A later read may have a newer value.
      if (old === undefined) this.#keepReady(key);
      else if (old.isDoubtful || old.changed < key.changed) this.#remember(key);
    }
  }

  /** Caches a key for outages only: it may have changed, so it is read again before any other use. */
  #keepReady(key: ReadKey): void {
    if (this.#known.size < this.#maxKeys && !this.#changing.has(key.record.id)) this.#remember(key, true);
  }

  /** Handles a changed key: reads in progress are discarded, and no other request joins them. */
  #note(id: string, changed: bigint): void {
    for (const missed of this.#missing) missed.set(id, changed);
    this.#unknown.clear();
    this.#reading.clear();
  }

  #noteUnknown(hash: string): void {
    const [oldest] = this.#unknown;
    if (this.#unknown.size === MAX_UNKNOWN && oldest !== undefined) this.#unknown.delete(oldest);
    this.#unknown.add(hash);
  }

  #forget(id: string): void {
    const old = this.#known.get(id)?.record;
    if (old === undefined) return;
    this.#known.delete(id);
    this.#ids.delete(old.hash);
    if (old.former !== undefined) this.#ids.delete(old.former.hash);
  }

  #remember({ record, changed }: ReadKey, isDoubtful = false): void {
    this.#forget(record.id);
    this.#known.set(record.id, { record, changed, isDoubtful });
    this.#ids.set(record.hash, record.id);
    if (record.former !== undefined) this.#ids.set(record.former.hash, record.id);
    const [oldest] = this.#known.keys();
    if (this.#known.size > this.#maxKeys && oldest !== undefined) this.#forget(oldest);
  }

  #recall(hash: string): Known | undefined {
    const id = this.#ids.get(hash);
    const key = id === undefined ? undefined : this.#known.get(id);
    if (id === undefined || key === undefined) return undefined;
    this.#known.delete(id);
    this.#known.set(id, key);
    return key;
  }

  #read(lookup: KeyLookup): Promise<KeyRecord | undefined> {
    const { hash } = lookup;
    const found = this.#reading.get(hash);
    if (found !== undefined) return found;
    const fresh = this.#readAnew(lookup).finally(() => {
      if (this.#reading.get(hash) === fresh) this.#reading.delete(hash);
    });
    this.#reading.set(hash, fresh);
    return fresh;
  }

  async #readAnew(lookup: KeyLookup): Promise<KeyRecord | undefined> {
    const missed = new Map<string, bigint>();
    this.#missing.add(missed);
    try {
      const key = await inTime(this.#parts.find(lookup), READ_MS);
      if (key === undefined && missed.size === 0) this.#noteUnknown(lookup.hash);
      const id = key?.record.id ?? this.#ids.get(lookup.hash);
      const version = missed.get(ANY) ?? missed.get(id ?? "") ?? 0n;
      if (id === undefined || (key?.changed ?? 0n) < version) return key?.record;
      if (key === undefined) this.#forget(id);
      else this.#remember(key);
      return key?.record;
    } finally {
      this.#missing.delete(missed);
    }
  }

  /** Reads a key, and retries once if only the connection was lost. */
  async #readUnknown(lookup: KeyLookup): Promise<KeyRecord | undefined> {
    if (!this.#parts.changes.isUp) throw outOfReach();
    try {
      return await this.#readQueue(() => this.#read(lookup));
    } catch (error) {
      if (!isOutOfReach(error) || !await this.#parts.changes.checkNow()) throw error;
      return await this.#readQueue(() => this.#read(lookup));
    }
  }

  async #readKnown({ record }: Known, lookup: KeyLookup): Promise<KeyRecord | undefined> {
    if (this.#parts.changes.isUp) {
      try {
        return await this.#read(lookup);
      } catch (error) {
        if (!isOutOfReach(error)) throw error;
        void this.#parts.changes.checkNow();
      }
    }
    if (this.#parts.changes.ageMs() > this.#parts.keyAgeMs) throw outOfReach();
    return record;
  }

  /** Invalidates the cached key after the change, whatever its outcome. */
  async #change<T>(id: string, work: () => Promise<T>): Promise<T> {
    const mine = Symbol();
    this.#changing.set(id, mine);
    try {
      return await work();
    } finally {
      this.#note(id, LAST);
      this.#forget(id);
      void this.#parts.changes.poll().catch(() => {}).then(() => {
        if (this.#changing.get(id) === mine) this.#changing.delete(id);
      });
    }
  }

  async #flush(): Promise<void> {
    const waiting = this.#uses;
    this.#uses = new Map();
    try {
      if (waiting.size > 0) await this.#parts.keys.touch(waiting);
    } catch (error) {
      this.#keepUses(waiting);
      if (!isOutOfReach(error)) throw error;
    }
  }

  #keepUses(used: ReadonlyMap<string, number>): void {
    for (const [id, at] of used) {
      if (this.#uses.has(id) || this.#uses.size < MAX_USES) this.#uses.set(id, Math.max(this.#uses.get(id) ?? 0, at));
    }
  }
}

/** Returns a copy of the key if the hash is its current one, or a previous one that is valid at `now`. */
function validKey(record: KeyRecord | undefined, { hash, now }: KeyLookup): KeyRecord | undefined {
  if (record === undefined) return undefined;
  const isGood = record.hash === hash || (record.former?.hash === hash && record.former.until > now);
  return isGood ? structuredClone(record) : undefined;
}

function outOfReach(): Error {
  return new Error("Cannot read the key: the database is unreachable");
}
