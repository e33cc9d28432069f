/** Caches the keys of a database in memory, so that requests do not wait for it and keys stay usable during outages. */
import type { KeyChange, KeyRecord, KeyStore } from "../keys.ts";
import type { ChangeOrigin } from "../operators.ts";
import { type Changes, READ_TIMEOUT_MS } from "./changes.ts";
import { inTime } from "../outage/reachability.ts";
import { boundConcurrency } from "../../scheduler.ts";
import { isOutOfReach } from "./client.ts";
import type { ReadKey } from "./keys.ts";

/** Age of the change feed above which cached keys are read again, in milliseconds. */
const MAX_FEED_AGE_MS = 2_000;

/** Maximum number of cached keys; the least recently used are evicted. */
const MAX_KEYS = 100_000;

/** Maximum number of cached unknown hashes; the oldest are evicted. */
const MAX_UNKNOWN = 1_000;

/**
 * Maximum number of concurrent reads of unknown keys, and of waiting ones, so that a flood of them does not delay other
 * reads.
 */
const MAX_CONCURRENT = 32;
const MAX_WAITING = 10_000;

/** Dependencies of the cache. */
export interface KeyCacheParts {
  keys: Omit<KeyStore, "findByHash">;
  /** Reads a key by its current hash, or by a previous hash that is still valid at `now`. */
  find: (lookup: KeyLookup) => Promise<ReadKey | undefined>;
  changes: Changes;
  /** Keys to cache at the start, so that they are usable during an outage before any request has used them. */
  first?: readonly ReadKey[];
  /** Age of the change feed up to which cached keys may be used during an outage, in milliseconds. */
  keyAgeMs: number;
  /** Maximum number of keys in memory; absent: 100,000. */
  maxKeys?: number;
}

/** Replaces an id where any key is meant. No key has this id. */
const ANY_KEY = "";

/** A change number above all others, which invalidates all reads in progress. */
const AFTER_ALL_CHANGES = 2n ** 63n;

interface KeyLookup {
  hash: string;
  /** Unix time in milliseconds. */
  now: number;
}

interface CachedKey extends ReadKey {
  /** True if it may have changed unnoticed. It is read again before it is used, except during an outage. */
  isDoubtful: boolean;
}

/**
 * Caches the keys of a database. Changes through the cache apply at once, changes by other nodes when the feed reports
 * them. While the database is unreachable, `findByHash` returns cached keys for up to `keyAgeMs`. For other keys it
 * rejects, and after that time for all keys.
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
  /** Cached keys by id, the most recently used last. */
  readonly #cached = new Map<string, CachedKey>();
  /** Ids of the cached keys by hash, previous hashes included. */
  readonly #ids = new Map<string, string>();
  /** Hashes that no key had at the last change of any key. */
  readonly #unknown = new Set<string>();
  /** Reads in progress by hash, shared by concurrent requests for the same key. */
  readonly #reading = new Map<string, Promise<KeyRecord | undefined>>();
  /**
   * For each read in progress, the ids and change numbers of the keys that have changed since it began: its result may
   * be from before these changes.
   */
  readonly #missedChanges = new Set<Map<string, bigint>>();
  /** Keys that this node is changing, by id: what the feed reports of them may be from before the change. */
  readonly #changing = new Map<string, symbol>();
  readonly #queueRead = boundConcurrency(MAX_CONCURRENT, {
    waiting: MAX_WAITING,
    error: () => new Error("Cannot read the key: too many unknown keys are being read"),
  });

  constructor(parts: KeyCacheParts) {
    this.#parts = parts;
    this.#maxKeys = parts.maxKeys ?? MAX_KEYS;
    parts.changes.watch({ keys: (changed) => this.#applyChanges(changed) });
    for (const key of parts.first ?? []) this.#cacheForOutages(key);
  }

  async findByHash(hash: string, now: number): Promise<KeyRecord | undefined> {
    const lookup = { hash, now };
    const key = this.#findCached(hash);
    if (this.#unknown.has(hash) && this.#parts.changes.isUp && this.#parts.changes.ageMs() <= MAX_FEED_AGE_MS) {
      return undefined;
    }
    if (key === undefined) return validKey(await this.#readUnknown(lookup), lookup);
    const isSure = !key.isDoubtful && this.#parts.changes.ageMs() <= MAX_FEED_AGE_MS;
    return validKey(isSure ? key.record : await this.#readKnown(key, lookup), lookup);
  }

  async add(key: KeyRecord, origin?: ChangeOrigin): Promise<boolean> {
    const isAdded = await this.#change(key.id, () => this.#parts.keys.add(key, origin));
    if (isAdded && this.#cached.size < this.#maxKeys) {
      this.#cache({ record: structuredClone(key), changed: 0n }, true);
    }
    return isAdded;
  }

  change(id: string, changes: KeyChange, origin?: ChangeOrigin): Promise<boolean> {
    return this.#change(id, () => this.#parts.keys.change(id, changes, origin));
  }

  revoke(id: string, at: number, origin?: ChangeOrigin): Promise<boolean> {
    return this.#change(id, () => this.#parts.keys.revoke(id, at, origin));
  }

  rotate(id: string, to: Parameters<KeyStore["rotate"]>[1], origin?: ChangeOrigin): Promise<boolean> {
    return this.#change(id, () => this.#parts.keys.rotate(id, to, origin));
  }

  async touch(used: ReadonlyMap<string, number>): Promise<void> {
    for (const [id, at] of used) {
      const key = this.#cached.get(id);
      if (key !== undefined) key.record = { ...key.record, lastUsedAt: Math.max(key.record.lastUsedAt ?? 0, at) };
    }
    await this.#parts.keys.touch(used);
  }

  /** Handles a report of the feed. */
  #applyChanges(changed: readonly ReadKey[] | "all"): void {
    if (changed === "all") {
      for (const key of this.#cached.values()) key.isDoubtful = true;
      this.#invalidateReads(ANY_KEY, AFTER_ALL_CHANGES);
      return;
    }
    for (const key of changed) {
      this.#invalidateReads(key.record.id, key.changed);
      const old = this.#cached.get(key.record.id);
      // A read may already have returned a newer value.
      if (old === undefined) this.#cacheForOutages(key);
      else if (old.isDoubtful || old.changed < key.changed) this.#cache(key);
    }
  }

  /** Caches a key for outages only: it may have changed, so it is read again before any other use. */
  #cacheForOutages(key: ReadKey): void {
    if (this.#cached.size < this.#maxKeys && !this.#changing.has(key.record.id)) this.#cache(key, true);
  }

  /**
   * Invalidates the reads in progress after a change of a key: their results are not cached, and no request joins them.
   */
  #invalidateReads(id: string, changed: bigint): void {
    for (const missed of this.#missedChanges) missed.set(id, changed);
    this.#unknown.clear();
    this.#reading.clear();
  }

  #rememberUnknown(hash: string): void {
    const [oldest] = this.#unknown;
    if (this.#unknown.size === MAX_UNKNOWN && oldest !== undefined) this.#unknown.delete(oldest);
    this.#unknown.add(hash);
  }

  #evict(id: string): void {
    const old = this.#cached.get(id)?.record;
    if (old === undefined) return;
    this.#cached.delete(id);
    this.#ids.delete(old.hash);
    if (old.former !== undefined) this.#ids.delete(old.former.hash);
  }

  #cache({ record, changed }: ReadKey, isDoubtful = false): void {
    this.#evict(record.id);
    this.#cached.set(record.id, { record, changed, isDoubtful });
    this.#ids.set(record.hash, record.id);
    if (record.former !== undefined) this.#ids.set(record.former.hash, record.id);
    const [oldest] = this.#cached.keys();
    if (this.#cached.size > this.#maxKeys && oldest !== undefined) this.#evict(oldest);
  }

  /** Finds a cached key, and marks it as the most recently used. */
  #findCached(hash: string): CachedKey | undefined {
    const id = this.#ids.get(hash);
    const key = id === undefined ? undefined : this.#cached.get(id);
    if (id === undefined || key === undefined) return undefined;
    this.#cached.delete(id);
    this.#cached.set(id, key);
    return key;
  }

  /** Reads a key. Concurrent reads of the same key are one. */
  #read(lookup: KeyLookup): Promise<KeyRecord | undefined> {
    const { hash } = lookup;
    const inProgress = this.#reading.get(hash);
    if (inProgress !== undefined) return inProgress;
    const read = this.#startRead(lookup).finally(() => {
      if (this.#reading.get(hash) === read) this.#reading.delete(hash);
    });
    this.#reading.set(hash, read);
    return read;
  }

  /** Reads a key, and caches the result unless the key has changed meanwhile. */
  async #startRead(lookup: KeyLookup): Promise<KeyRecord | undefined> {
    const missed = new Map<string, bigint>();
    this.#missedChanges.add(missed);
    try {
      const key = await inTime(this.#parts.find(lookup), READ_TIMEOUT_MS);
      if (key === undefined && missed.size === 0) this.#rememberUnknown(lookup.hash);
      const id = key?.record.id ?? this.#ids.get(lookup.hash);
      const least = missed.get(ANY_KEY) ?? missed.get(id ?? "") ?? 0n;
      if (id === undefined || (key?.changed ?? 0n) < least) return key?.record;
      if (key === undefined) this.#evict(id);
      else this.#cache(key);
      return key?.record;
    } finally {
      this.#missedChanges.delete(missed);
    }
  }

  /** Reads a key that is not cached, a second time if only the connection was lost. */
  async #readUnknown(lookup: KeyLookup): Promise<KeyRecord | undefined> {
    if (!this.#parts.changes.isUp) throw outOfReach();
    try {
      return await this.#queueRead(() => this.#read(lookup));
    } catch (error) {
      if (!isOutOfReach(error)) await this.#assertUnreadable(error);
      else if (await this.#parts.changes.checkNow(error)) return await this.#queueRead(() => this.#read(lookup));
      throw error;
    }
  }

  /** Reads a cached key again. During an outage, returns it as it is. */
  async #readKnown({ record }: CachedKey, lookup: KeyLookup): Promise<KeyRecord | undefined> {
    if (this.#parts.changes.isUp) {
      try {
        return await this.#read(lookup);
      } catch (error) {
        await this.#assertUnreadable(error);
      }
    }
    if (this.#parts.changes.ageMs() > this.#parts.keyAgeMs) throw outOfReach();
    return record;
  }

  /** Returns if the change feed cannot be read either: while an operator restores the database, any error may occur. */
  async #assertUnreadable(error: unknown): Promise<void> {
    const { changes } = this.#parts;
    if (isOutOfReach(error)) return void changes.checkNow(error);
    if (changes.isReadable) await changes.checkNow(error);
    if (changes.isReadable) throw error;
  }

  /** Changes a key. Afterwards, whether that succeeded or not, it is no longer cached. */
  async #change<T>(id: string, work: () => Promise<T>): Promise<T> {
    const token = Symbol();
    this.#changing.set(id, token);
    try {
      return await work();
    } finally {
      this.#invalidateReads(id, AFTER_ALL_CHANGES);
      this.#evict(id);
      void this.#parts.changes.poll().catch(() => {}).then(() => {
        if (this.#changing.get(id) === token) this.#changing.delete(id);
      });
    }
  }
}

/** Returns a copy of a key if the hash is its current one, or a previous one that is still valid. */
function validKey(record: KeyRecord | undefined, { hash, now }: KeyLookup): KeyRecord | undefined {
  if (record === undefined) return undefined;
  const isCurrent = record.hash === hash || (record.former?.hash === hash && record.former.until > now);
  return isCurrent ? structuredClone(record) : undefined;
}

function outOfReach(): Error {
  return new Error("Cannot read the key: the database is unreachable");
}
