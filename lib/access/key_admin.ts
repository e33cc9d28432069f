/** Creates, changes, rotates and revokes keys of the store, with the error messages of the CLI and the admin API. */
import { type Config, groupOf, type KeyRules, keyRulesSchema, nameSchema } from "../config.ts";
import { pathText, schemaProblems } from "../config/problems.ts";
import { GatewayError } from "../errors.ts";
import { issueText } from "../issue_text.ts";
import type { PublicKey } from "./public_key.ts";
import { DAY_MS } from "../store/days.ts";
import { yieldToEventLoop } from "../scheduler.ts";
import type { ChangeableKey, KeyPage, KeyRecord, KeyStore } from "../store/keys.ts";
import type { ChangeOrigin } from "../store/operators.ts";
import type { Store } from "../store/store.ts";
import { findConfiguredKey, hashKey, issueKey, mintKey } from "./keys.ts";
import { isoTime } from "../store/times.ts";

/** Longest time that a replaced secret may stay valid: 90 days, in milliseconds. */
const MAX_OVERLAP_MS = 90 * DAY_MS;

/** Dependencies of the operations on keys. */
export interface KeyAdmin {
  config: Pick<Config, "groups" | "keys">;
  store: Pick<Store, "keys">;
  /** Unix time in milliseconds. */
  now: () => number;
  /** The author of the changes, for the log of changes. */
  origin: ChangeOrigin;
}

/** Properties of a new key. */
export interface NewKeyRequest {
  name: string;
  group: string;
  /** Rules, not yet validated and without defaults; absent: none, so that the group's apply. */
  rules?: unknown;
  /** Unix time in milliseconds; absent: it does not expire. */
  expiresAt?: number;
}

/** A change of a key. Absent members stay unchanged. */
export interface KeyChangeRequest {
  disabled?: boolean;
  group?: string;
  /** Replaces all rules of the key. Not yet validated. */
  rules?: unknown;
  /** Unix time in milliseconds; `null`: it does not expire. */
  expiresAt?: number | null;
  /** The key as the author of the change saw it. Absent: the change applies even if the key has changed since. */
  seen?: ChangeableKey;
}

/** A key with its secret, which is shown only once, and its stored record. */
export interface ShownKey {
  key: string;
  record: KeyRecord;
}

/**
 * Creates a key.
 * @throws {GatewayError} `invalid` for an invalid or used name, an unknown group, invalid rules, or an expiry in the
 * past
 */
export async function createKey(
  { config, store, now, origin }: KeyAdmin,
  { name, group, rules = {}, expiresAt }: NewKeyRequest,
): Promise<ShownKey> {
  const what = `Cannot add a key "${name}"`;
  const checked = nameSchema.safeParse(name, { error: issueText });
  if (!checked.success) {
    throw invalid(`${what}: ${checked.error.issues[0]?.message ?? "invalid name"}`, "name");
  }
  if (config.keys.some((key) => key.name === name)) {
    throw invalid(`${what}: the configuration has a key with this name`, "name");
  }
  requireGroup(config, group, what);
  if (expiresAt !== undefined) requireFuture(expiresAt, { now: now(), what });
  const issued = issueKey({
    name,
    group,
    rules: readRules(rules, what),
    now: now(),
    ...(expiresAt !== undefined && { expiresAt }),
  });
  if (!await store.keys.add(issued.record, origin)) throw invalid(`${what}: another key has this name`, "name");
  return issued;
}

/**
 * Changes the key with a name or id.
 * @throws {GatewayError} `not_found` for an unknown key; `invalid` for a configured or revoked one, an invalid change,
 * or a key that differs from `seen`
 */
export async function changeKey(
  admin: KeyAdmin,
  nameOrId: string,
  change: KeyChangeRequest,
): Promise<KeyRecord> {
  const { disabled, group, rules, expiresAt, seen } = change;
  const isSwitch = disabled !== undefined && Object.keys(change).length === 1;
  const switchVerb = disabled ? "disable" : "enable";
  const what = `Cannot ${isSwitch ? switchVerb : "change"} key "${nameOrId}"`;
  const { id } = await findChangeable(admin, nameOrId, what);
  if (group !== undefined) requireGroup(admin.config, group, what);
  if (typeof expiresAt === "number") requireFuture(expiresAt, { now: admin.now(), what });
  const done = await admin.store.keys.change(id, {
    ...(disabled !== undefined && { disabled }),
    ...(group !== undefined && { group }),
    ...(rules !== undefined && { rules: readRules(rules, what) }),
    ...(expiresAt !== undefined && { expiresAt }),
    ...(seen !== undefined && { seen }),
  }, admin.origin);
  if (!done) {
    await findChangeable(admin, nameOrId, what);
    throw invalid(`${what}: it was changed in the meantime`);
  }
  return await findKey(admin, id);
}

/**
 * Replaces the secret of a key. The current secret stays valid for `overlapMs`; one from an earlier rotation becomes
 * invalid. Id, group, rules and bill stay the same. Another rotation in the meantime is an error, because its secret
 * would become invalid.
 * @param options `seen`: the hash of the secret that is replaced; absent: that of the current one
 * @throws {GatewayError} `not_found` for an unknown key; `invalid` for a configured, revoked or expired one, or an
 * overlap that is too long
 */
export async function rotateKey(
  admin: KeyAdmin,
  nameOrId: string,
  { overlapMs, seen }: { overlapMs: number; seen?: string },
): Promise<ShownKey> {
  const what = `Cannot rotate key "${nameOrId}"`;
  if (!Number.isSafeInteger(overlapMs) || overlapMs < 0 || overlapMs > MAX_OVERLAP_MS) {
    throw invalid(`${what}: the overlap must be from 0 seconds to 90 days`, "overlap");
  }
  const { id, hash, expiresAt = Infinity } = await findChangeable(admin, nameOrId, what);
  const now = admin.now();
  if (expiresAt <= now) throw invalid(`${what}: it has expired; give it a later expiry first`);
  const key = mintKey();
  const rotation = { hash: hashKey(key), until: now + overlapMs, from: seen ?? hash };
  if (!await admin.store.keys.rotate(id, rotation, admin.origin)) {
    await findChangeable(admin, nameOrId, what);
    throw invalid(`${what}: it was rotated in the meantime`);
  }
  return { key, record: await findKey(admin, id) };
}

/** Revokes a key. @throws {GatewayError} `not_found` for an unknown key; `invalid` for a configured or revoked one */
export async function revokeKey(admin: KeyAdmin, nameOrId: string): Promise<KeyRecord> {
  const what = `Cannot revoke key "${nameOrId}"`;
  const { id } = await findChangeable(admin, nameOrId, what);
  if (!await admin.store.keys.revoke(id, admin.now(), admin.origin)) throw revoked(what);
  return await findKey(admin, id);
}

/** Keys per page, which take a few milliseconds to read. */
const KEYS_PER_PAGE = 500;

/** Reads all keys in pages, the oldest first. Other tasks of the event loop run between the pages. */
export async function* keyPages(keys: Pick<KeyStore, "page">): AsyncGenerator<KeyRecord[]> {
  for (let after: number | undefined = 0; after !== undefined;) {
    const page: KeyPage = await keys.page({ after, limit: KEYS_PER_PAGE });
    yield page.keys;
    after = page.next;
    if (after !== undefined) await yieldToEventLoop();
  }
}

/**
 * Finds a key by its id. If no key has this id, finds one by its name: the key that is not revoked, otherwise the
 * latest.
 * @throws {GatewayError} `not_found` if there is none in the store
 */
export async function findKey(
  { config, store }: Pick<KeyAdmin, "config" | "store">,
  nameOrId: string,
): Promise<KeyRecord> {
  const found = await store.keys.find(nameOrId);
  if (found !== undefined) return found;
  const what = `Cannot find key "${nameOrId}"`;
  if (findConfiguredKey(config, nameOrId) === undefined) return notFound(what);
  throw new GatewayError("not_found", `${what}: it comes from the configuration`);
}

/** Returns a key as operators see it. @param now Unix time in milliseconds */
export function publicKey(record: KeyRecord, now: number): PublicKey {
  const { id, name, group, createdAt, expiresAt, lastUsedAt, revokedAt, rules, former } = record;
  return {
    id,
    name,
    group,
    state: stateOf(record, now),
    created_at: new Date(createdAt).toISOString(),
    expires_at: isoTime(expiresAt),
    last_used_at: isoTime(lastUsedAt),
    revoked_at: isoTime(revokedAt),
    rules,
    former_until: isoTime(former !== undefined && former.until > now ? former.until : undefined),
  };
}

function stateOf({ revokedAt, expiresAt = Infinity, disabled }: KeyRecord, now: number): PublicKey["state"] {
  if (revokedAt !== undefined) return "revoked";
  if (expiresAt <= now) return "expired";
  return disabled ? "disabled" : "active";
}

/** Finds a key of the store that is not revoked. @throws {GatewayError} whose message begins with `what` */
async function findChangeable({ config, store }: KeyAdmin, nameOrId: string, what: string): Promise<KeyRecord> {
  const key = await store.keys.find(nameOrId);
  if (key === undefined) {
    if (findConfiguredKey(config, nameOrId) === undefined) return notFound(what);
    throw invalid(`${what}: it comes from the configuration`);
  }
  if (key.revokedAt !== undefined) throw revoked(what);
  return key;
}

function requireGroup(config: KeyAdmin["config"], group: string, what: string): void {
  if (groupOf(config, group) !== undefined) return;
  throw invalid(`${what}: unknown group "${group}"; known: ${Object.keys(config.groups).join(", ")}`, "group");
}

function requireFuture(expiresAt: number, { now, what }: { now: number; what: string }): void {
  // `Date` cannot represent arbitrarily late times.
  if (expiresAt > now && !Number.isNaN(new Date(expiresAt).getTime()) && Number.isInteger(expiresAt)) return;
  throw invalid(`${what}: its expiry must be in the future`, "expires_at");
}

function readRules(rules: unknown, what: string): KeyRules {
  const checked = keyRulesSchema.safeParse(rules);
  if (checked.success) return checked.data;
  const problems = schemaProblems(keyRulesSchema, checked.error, rules);
  throw invalid(
    `${what}: its rules are invalid: ${problems.join("; ")}`,
    pathText(["rules", ...checked.error.issues[0]?.path ?? []]),
  );
}

function invalid(message: string, param?: string): GatewayError {
  return new GatewayError("invalid", message, param === undefined ? {} : { param });
}

function revoked(what: string): GatewayError {
  return invalid(`${what}: it is revoked`);
}

function notFound(what: string): never {
  throw new GatewayError("not_found", `${what}: there is no key with this name or id`);
}
