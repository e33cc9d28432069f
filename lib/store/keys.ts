/** API keys, as they are kept: never the key, only its hash. */
import type { KeyRules } from "../config.ts";

/** One key. */
export interface KeyRecord {
  /** Id of the key, never used again. It stays when the key is rotated: limits, budget and bill belong to it. */
  id: string;
  /** Unique among the keys that are not revoked. */
  name: string;
  /** SHA-256 of the key, hexadecimal. */
  hash: string;
  /** Name of the key's group. */
  group: string;
  /** Unix time in milliseconds. */
  createdAt: number;
  /** A disabled key is refused until it is enabled again. */
  disabled: boolean;
  /** Unix time in milliseconds; absent: in use. A revoked key stays listed and cannot come back. */
  revokedAt?: number;
  /** Unix time in milliseconds from which on it is refused; absent: never. */
  expiresAt?: number;
  /** Unix time in milliseconds, to the minute; absent: never used. */
  lastUsedAt?: number;
  /** Rules in addition to its group's, or stricter. */
  rules: KeyRules;
  /** A former key that is good until then, in Unix milliseconds, after a rotation. */
  former?: { hash: string; until: number };
}

/** A change to a key; absent members stay as they are, `null` takes an expiry away. */
export interface KeyChange {
  disabled?: boolean;
  group?: string;
  rules?: KeyRules;
  expiresAt?: number | null;
}

/** Counts of keys, cheap for any number of keys. */
export interface KeySummary {
  /** Keys that were ever made. */
  total: number;
  /** Of them, those that were not revoked. */
  inUse: number;
  /** The oldest of those in use, at most as many as were asked for. */
  oldest: KeyRecord[];
}

/** Some keys, in their order. */
export interface KeyPage {
  keys: KeyRecord[];
  /** The place to go on after; absent where there are no more. */
  next?: number;
}

/** Stores API keys. */
export interface KeyStore {
  /**
   * A number that changes as soon as any key may have changed, in any process. A result of `findByHash` is valid while
   * the number stays the same, except that former keys expire. Absent if reading it costs as much as finding a key:
   * then results must not be cached.
   */
  version?(): number;
  /** Keeps a new key. False where its name is taken by a key in use, or its id or hash by any key. */
  add(key: KeyRecord): Promise<boolean>;
  /** The key with this hash, or with a former key of this hash that is good at `now`; disabled and revoked ones included. */
  findByHash(hash: string, now: number): Promise<KeyRecord | undefined>;
  /** Lists every key, oldest first, in one blocking call: for processes that serve no requests. */
  list(): Promise<KeyRecord[]>;
  /** Counts the keys and returns the oldest ones in use, at most `most`, in constant memory. */
  summary(most: number): Promise<KeySummary>;
  /** Keys, oldest first, from behind a place on; 0 is before all of them. */
  page(from: { after: number; limit: number }): Promise<KeyPage>;
  /** Finds the key with this id, else the active key with this name, else the last key that had this name. */
  find(nameOrId: string): Promise<KeyRecord | undefined>;
  /** The keys with these ids, in any order; ended ones included, unknown ones left out. */
  findIds(ids: readonly string[]): Promise<KeyRecord[]>;
  /** Names of the keys with these ids, by id; ended ones included, unknown ones left out. */
  names(ids: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** Changes a key. False where no key in use has this id. */
  change(id: string, change: KeyChange): Promise<boolean>;
  /**
   * Revokes a key and its former secret permanently; `at` is Unix time in milliseconds. Returns false if no active key
   * has this id.
   */
  revoke(id: string, at: number): Promise<boolean>;
  /**
   * Gives a key a new hash. The present one becomes the former one, good until `until`; an older former one ends.
   * False where no key in use has this id, or the hash is taken.
   */
  rotate(id: string, to: { hash: string; until: number }): Promise<boolean>;
  /** Notes when keys were last used, by id. Later times win. */
  touch(used: ReadonlyMap<string, number>): Promise<void>;
}
