/** API keys: how they are made, and how a credential finds its key. */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { type Config, type Group, groupOf, type KeyRules } from "../config.ts";
import { GatewayError } from "../errors.ts";
import type { KeyRecord, KeyStore } from "../store/keys.ts";

const PREFIX = "sk-sluice-";
const BODY_BYTES = 32;
const BODY_LENGTH = 43;
const CHECKSUM_LENGTH = 6;
const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/** What ids of the configuration's keys begin with. */
const CONFIGURED = "config:";
const MINUTE_MS = 60_000;
/** Credentials whose keys are remembered: those that came first go first. */
const MOST_KNOWN = 10_000;
/** Wrong keys that are remembered, those that came first go first: clients repeat them. */
const MOST_UNKNOWN = 1_000;
const ISSUED = /^sk-sluice-[A-Za-z0-9_-]{43}[A-Za-z0-9]{6}$/;

/** The keys in force: those of the store, as they are at every request, and those of the configuration. */
export interface KeyRing {
  /**
   * The key a credential belongs to, whatever state it is in; `undefined` where it was never issued, or is revoked.
   * @throws {GatewayError} where the store fails
   */
  find(credential: string): KeyRecord | undefined | Promise<KeyRecord | undefined>;
  /** Notes that a key was used now. In memory: `flush` brings it to the store. */
  note(keyId: string): void;
  /** Writes to the store when keys were last used. Where it rejects, nothing is forgotten. */
  flush(): Promise<void>;
  /** Reads the store once, to prove that it answers. @throws {GatewayError} where it fails */
  check(): Promise<void>;
  /** The rules of a group, by its name. */
  group(name: string): Group | undefined;
  /** Unix time in milliseconds. */
  now(): number;
  /** The keys of another configuration. What was noted stays. */
  renewed(config: KeyRingParts["config"]): KeyRing;
}

/** What a ring is made of. */
export interface KeyRingParts {
  config: Pick<Config, "keys" | "groups" | "admin">;
  store: KeyStore;
  /** Unix time in milliseconds. */
  now: () => number;
}

/**
 * Makes the ring. What was read of a key is used again only where the store knows that it still holds, so that what the
 * command line does to a key binds at the next request.
 */
export function createKeyRing({ config, store, now }: KeyRingParts): KeyRing {
  return ringOf(config, { store, now, noted: { used: new Map() } });
}

/** When keys were last used: minute of the last use by id of the key, in Unix milliseconds; what is not in the store yet. */
interface Noted {
  used: Map<string, number>;
}

/** A credential that has found a key. */
interface Known {
  hash: string;
  /** Its key, as it was at a version of the store. */
  record: KeyRecord;
  version: number | undefined;
}

function ringOf(
  config: KeyRingParts["config"],
  { store, now, noted }: Omit<KeyRingParts, "config"> & { noted: Noted },
): KeyRing {
  const configured = new Map(config.keys.map(({ name, group, hash, rules }): [string, KeyRecord] => [
    hash,
    { id: CONFIGURED + name, name, hash, group, createdAt: 0, disabled: false, rules },
  ]));
  /** By credential. Wrong ones are kept apart, so that they displace no good one. */
  const known = new Map<string, Known>();
  /** Hashes of wrong ones in the form of a key, and the version of the store that does not have them. */
  const unknown = new Map<string, number>();

  function noteUnknown(hash: string, version: number | undefined): void {
    // Without a version of the store, a key may be there at the next request.
    if (version === undefined) return;
    const [oldest] = unknown.keys();
    if (unknown.size === MOST_UNKNOWN && oldest !== undefined && !unknown.has(hash)) unknown.delete(oldest);
    unknown.set(hash, version);
  }

  function isUnknown(hash: string): boolean {
    const version = unknown.get(hash);
    return version !== undefined && version === versionOf(store);
  }

  async function read(credential: string, hash: string): Promise<KeyRecord | undefined> {
    // Before it is read: what changes meanwhile is another version.
    const version = versionOf(store);
    const record = await readKey(store, { hash, now: now() });
    if (record === undefined || record.revokedAt !== undefined) {
      known.delete(credential);
      noteUnknown(hash, version);
      return undefined;
    }
    const [oldest] = known.keys();
    if (known.size === MOST_KNOWN && oldest !== undefined && !known.has(credential)) known.delete(oldest);
    known.set(credential, { hash, record, version });
    return record;
  }

  return {
    find(credential) {
      // Found by the credential itself: to hash it and to read its key is 15 to 20 µs of every request.
      const found = known.get(credential);
      if (found !== undefined) {
        const { hash, record, version } = found;
        const holds = version !== undefined && version === versionOf(store) && isIn(record, { hash, now });
        return holds ? record : read(credential, hash);
      }
      const hash = hashKey(credential);
      // Whatever else it may be, the admin key is nobody's API key.
      if (hash === config.admin?.hash) return undefined;
      const own = configured.get(hash);
      return own !== undefined || !isIssued(credential) || isUnknown(hash) ? own : read(credential, hash);
    },
    note(keyId) {
      if (keyId.startsWith(CONFIGURED)) return;
      const at = now();
      noted.used.set(keyId, at - at % MINUTE_MS);
    },
    async flush() {
      if (noted.used.size === 0) return;
      const taken = noted.used;
      noted.used = new Map();
      try {
        await store.touch(taken);
      } catch (error) {
        noted.used = new Map([...taken, ...noted.used]);
        throw error;
      }
    },
    async check() {
      await readKey(store, { hash: "", now: now() });
    },
    group: (name) => groupOf(config, name),
    now,
    renewed: (other) => ringOf(other, { store, now, noted }),
  };
}

/** A new key: prefix, 32 random bytes in base64url, checksum. `random` fills the array it is given. */
export function mintKey(random: (bytes: Uint8Array<ArrayBuffer>) => void = fillRandom): string {
  const bytes = new Uint8Array(BODY_BYTES);
  random(bytes);
  const text = PREFIX + Buffer.from(bytes).toString("base64url");
  return text + checksum(text);
}

/** What is known of a key before it is made. */
export interface NewKey {
  name: string;
  group: string;
  /** Absent: what the group may. */
  rules?: KeyRules;
  /** Unix time in milliseconds; absent: it does not expire. */
  expiresAt?: number;
  /** Unix time in milliseconds. */
  now: number;
}

/** A new key for a group, and the record to keep of it. The key itself is shown once and then forgotten. */
export function issueKey({ name, group, rules = {}, expiresAt, now }: NewKey): { key: string; record: KeyRecord } {
  const key = mintKey();
  const id = `key_${Buffer.from(crypto.getRandomValues(new Uint8Array(9))).toString("base64url")}`;
  return {
    key,
    record: {
      id,
      name,
      hash: hashKey(key),
      group,
      createdAt: now,
      disabled: false,
      rules,
      ...(expiresAt !== undefined && { expiresAt }),
    },
  };
}

/** True for text that has the form and the checksum of a key that a gateway issued. */
export function isIssued(credential: string): boolean {
  const end = PREFIX.length + BODY_LENGTH;
  return credential.length === end + CHECKSUM_LENGTH && ISSUED.test(credential) &&
    checksum(credential.slice(0, end)) === credential.slice(end);
}

/** SHA-256 of a key, hexadecimal: all that is ever kept of it. */
export function hashKey(key: string): string {
  return createHash("sha256").update(key).digest("hex");
}

function fillRandom(bytes: Uint8Array<ArrayBuffer>): void {
  crypto.getRandomValues(bytes);
}

/** Whether a key still has this hash. A former one runs out without a change. */
function isIn({ hash, former }: KeyRecord, asked: { hash: string; now: () => number }): boolean {
  return hash === asked.hash || (former !== undefined && former.until > asked.now());
}

/** What fails here fails again where the key is read, and is told there. */
function versionOf(store: KeyStore): number | undefined {
  try {
    return store.version?.();
  } catch {
    return undefined;
  }
}

/** A store that fails must never look like a wrong key. */
async function readKey(
  store: KeyStore,
  { hash, now }: { hash: string; now: number },
): Promise<KeyRecord | undefined> {
  try {
    return await store.findByHash(hash, now);
  } catch (cause) {
    throw new GatewayError("overloaded", "Cannot check the API key: the key store does not answer", { cause });
  }
}

function checksum(text: string): string {
  let rest = crc32(text);
  let digits = "";
  for (let place = 0; place < CHECKSUM_LENGTH; place++) {
    digits = DIGITS.charAt(rest % DIGITS.length) + digits;
    rest = Math.floor(rest / DIGITS.length);
  }
  return digits;
}

/** CRC-32 as in gzip and PNG (reflected, polynomial 0xEDB88320) of ASCII text. */
function crc32(text: string): number {
  let crc = 0xffffffff;
  for (let index = 0; index < text.length; index++) {
    crc ^= text.charCodeAt(index);
    for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  }
  return (crc ^ 0xffffffff) >>> 0;
}
