/** The store of API keys. It has their hashes, never the keys themselves. */
import type { KeyRules } from "../config.ts";
import type { ChangeOrigin } from "./operators.ts";

/** A stored key. */
export interface KeyRecord {
  /** Id of the key, never reused. It survives rotation, because limits, budget and bill belong to it. */
  id: string;
  /** Unique among keys that are not revoked. */
  name: string;
  /** SHA-256 of the secret key, hexadecimal. */
  hash: string;
  /** Name of the key's group. */
  group: string;
  /** When the key was created, Unix time in milliseconds. */
  createdAt: number;
  /** A disabled key is rejected until it is enabled again. */
  disabled: boolean;
  /**
   * Time of revocation, Unix time in milliseconds; absent: not revoked. A revoked key stays listed and cannot be
   * restored.
   */
  revokedAt?: number;
  /** Unix time in milliseconds from which the key is rejected; absent: never. */
  expiresAt?: number;
  /** Unix time in milliseconds, to the minute; absent: never used. */
  lastUsedAt?: number;
  /** Rules that extend or restrict those of its group. */
  rules: KeyRules;
  /** Hash of the previous secret after a rotation. It is valid until this Unix time in milliseconds. */
  former?: { hash: string; until: number };
}

/** The members of a key that its change replaces. */
export type ChangeableKey = Pick<KeyRecord, "group" | "rules" | "expiresAt">;

/** A change to a key; absent members stay unchanged, `null` removes an expiry. */
export interface KeyChange {
  /** The key as the author of the change saw it. If it has changed since, nothing is changed. Absent: no check. */
  seen?: ChangeableKey;
  disabled?: boolean;
  group?: string;
  rules?: KeyRules;
  expiresAt?: number | null;
}

/** Counts of keys, and some of them. */
export interface KeySummary {
  /** All keys, including revoked ones. */
  total: number;
  /** Keys that are not revoked. */
  inUse: number;
  /** The oldest keys that are not revoked: at most as many as requested. */
  oldest: KeyRecord[];
}

/** A page of keys. */
export interface KeyPage {
  keys: KeyRecord[];
  /** `after` of the next page; absent for the last page. */
  next?: number;
}

/** Stores API keys. A change with an origin is logged in the same transaction: either both happen or neither. */
export interface KeyStore {
  /**
   * A number that changes as soon as any key may have changed, in any process. A result of `findByHash` is valid while
   * the number stays the same, except that previous secrets expire. Absent if reading the number costs as much as
   * finding a key; then results must not be cached.
   */
  version?(): number;
  /** Adds a key. Returns false if a key that is not revoked has its name, or any key its id or hash. */
  add(key: KeyRecord, origin?: ChangeOrigin): Promise<boolean>;
  /** Finds the key with this hash, current or previous (if valid at `now`). Includes disabled and revoked keys. */
  findByHash(hash: string, now: number): Promise<KeyRecord | undefined>;
  /** Lists every key, oldest first, in one blocking call: for processes that serve no requests. */
  list(): Promise<KeyRecord[]>;
  /** Counts the keys, and returns the `limit` oldest ones that are not revoked. Needs constant memory. */
  summary(limit: number): Promise<KeySummary>;
  /** Lists keys, oldest first. @param from `after`: 0 for the first page, then `next` of the previous one */
  page(from: { after: number; limit: number }): Promise<KeyPage>;
  /** Finds the key with this id, otherwise the active key with this name, otherwise the last key that had this name. */
  find(nameOrId: string): Promise<KeyRecord | undefined>;
  /** Finds the keys with these ids, in any order. Includes revoked keys, and leaves out unknown ids. */
  findIds(ids: readonly string[]): Promise<KeyRecord[]>;
  /** Changes a key. Returns false if no active key has this id, or it differs from `seen`. */
  change(id: string, change: KeyChange, origin?: ChangeOrigin): Promise<boolean>;
  /**
   * Revokes a key and its former secret permanently; `at` is Unix time in milliseconds. Returns false if no active key
   * has this id.
   */
  revoke(id: string, at: number, origin?: ChangeOrigin): Promise<boolean>;
  /**
   * Replaces the hash of a key. The current hash stays valid until `until`; an older previous hash ends. Returns false
   * if no active key has this id, or the hash exists already.
   * @param to `from`: the current hash, without which nothing is changed; absent: any
   */
  rotate(id: string, to: { hash: string; until: number; from?: string }, origin?: ChangeOrigin): Promise<boolean>;
  /** Records when keys were last used, by id. An earlier time than the recorded one changes nothing. */
  touch(used: ReadonlyMap<string, number>): Promise<void>;
}
