/** Makes API keys, and finds the key that a credential belongs to. */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import type { Config, Group, KeyRules } from "../config.ts";
import { GatewayError } from "../errors.ts";
import type { KeyRecord, KeyStore } from "../store/keys.ts";

const PREFIX = "sk-sluice-";
const BODY_BYTES = 32;
const BODY_LENGTH = 43;
const CHECKSUM_LENGTH = 6;
const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/** Id prefix of configured keys. */
const CONFIGURED = "config:";
const MINUTE_MS = 60_000;
/** Most cached credentials. The oldest are evicted. */
const MAX_KNOWN = 10_000;
/** Most cached wrong keys, which clients tend to repeat. The oldest are evicted. */
const MAX_UNKNOWN = 1_000;
const ISSUED = /^sk-sluice-[A-Za-z0-9_-]{43}[A-Za-z0-9]{6}$/;

/** Looks up keys of the store, always current, and keys of the configuration. */
export interface KeyRing {
  /**
   * Finds the key of a credential, in any state; `undefined` if it was never issued or is revoked.
   * @throws {GatewayError} if the store fails
   */
  find(credential: string): KeyRecord | undefined | Promise<KeyRecord | undefined>;
  /** Records in memory that a key was used now. `flush` writes it to the store. */
  note(keyId: string): void;
  /** Writes the times of the last use to the store. After a rejection the next call writes them again. */
  flush(): Promise<void>;
  /** Reads the store once to check that it answers. @throws {GatewayError} if it fails */
  check(): Promise<void>;
  group(name: string): Group | undefined;
  /** Unix time in milliseconds. */
  now(): number;
  /** Returns a key ring for another configuration. Recorded uses are kept. */
  renewed(config: KeyRingParts["config"]): KeyRing;
}

/** Parts of a key ring. */
export interface KeyRingParts {
  config: Pick<Config, "keys" | "groups" | "admin">;
  store: KeyStore;
  /** Unix time in milliseconds. */
  now: () => number;
}

/**
 * Creates a key ring. Cached keys are valid until the store's version changes, so changes by the command line apply at
 * the next request.
 */
export function createKeyRing({ config, store, now }: KeyRingParts): KeyRing {
  return ringOf(config, { store, now, noted: { used: new Map() } });
}

/** Unsaved last uses: Unix milliseconds, rounded to the minute, by key id. */
interface Noted {
  used: Map<string, number>;
}

interface Known {
  hash: string;
  /** The key at a version of the store. */
  record: KeyRecord;
  version: number | undefined;
}

function ringOf(
  config: KeyRingParts["config"],
  { store, now, noted }: Omit<KeyRingParts, "config"> & { noted: Noted },
): KeyRing {
  const groups = new Map(Object.entries(config.groups));
  const configured = new Map(configuredKeys(config).map((record) => [record.hash, record]));
  /** The same by credential, from its first use on. */
  const configuredByCredential = new Map<string, KeyRecord>();
  /** By credential. Wrong credentials have a separate cache, so they never evict valid ones. */
  const known = new Map<string, Known>();
  /** Hashes without a key, with the store version they were looked up at. */
  const unknown = new Map<string, number>();

  function noteUnknown(hash: string, version: number | undefined): void {
    // Without a version, the key may exist at the next request.
    if (version === undefined) return;
    const [oldest] = unknown.keys();
    if (unknown.size === MAX_UNKNOWN && oldest !== undefined && !unknown.has(hash)) unknown.delete(oldest);
    unknown.set(hash, version);
  }

  function isUnknown(hash: string): boolean {
    const version = unknown.get(hash);
    return version !== undefined && version === versionOf(store);
  }

  async function read(credential: string, hash: string): Promise<KeyRecord | undefined> {
    // Read before the key, so that a concurrent change has another version.
    const version = versionOf(store);
    const record = await readKey(store, { hash, now: now() });
    if (record === undefined || record.revokedAt !== undefined) {
      known.delete(credential);
      noteUnknown(hash, version);
      return undefined;
    }
    const [oldest] = known.keys();
    if (known.size === MAX_KNOWN && oldest !== undefined && !known.has(credential)) known.delete(oldest);
    known.set(credential, { hash, record, version });
    return record;
  }

  return {
    find(credential) {
      // By the credential itself: hashing it and reading its key would add 15 to 20 µs to every request.
      const own = configuredByCredential.get(credential);
      if (own !== undefined) return own;
      const found = known.get(credential);
      if (found !== undefined) {
        const { hash, record, version } = found;
        const holds = version !== undefined && version === versionOf(store) && isIn(record, { hash, now });
        return holds ? record : read(credential, hash);
      }
      const hash = hashKey(credential);
      // An admin key is never an API key, even if the store contains its hash.
      if (hash === config.admin?.hash || hash === config.admin?.viewerHash) return undefined;
      const configuredKey = configured.get(hash);
      if (configuredKey !== undefined) {
        configuredByCredential.set(credential, configuredKey);
        return configuredKey;
      }
      return !isIssued(credential) || isUnknown(hash) ? undefined : read(credential, hash);
    },
    note(keyId) {
      if (keyId.startsWith(CONFIGURED)) return;
      const at = now();
      noted.used.set(keyId, at - at % MINUTE_MS);
    },
    async flush() {
      if (noted.used.size === 0) return;
      const uses = noted.used;
      noted.used = new Map();
      try {
        await store.touch(uses);
      } catch (error) {
        noted.used = new Map([...uses, ...noted.used]);
        throw error;
      }
    },
    async check() {
      await readKey(store, { hash: "", now: now() });
    },
    group: (name) => groups.get(name),
    now,
    renewed: (other) => ringOf(other, { store, now, noted }),
  };
}

/** Returns the keys of the configuration. */
export function configuredKeys({ keys }: Pick<Config, "keys">): KeyRecord[] {
  return keys.map(({ name, group, hash, rules }) => {
    return { id: CONFIGURED + name, name, hash, group, createdAt: 0, disabled: false, rules };
  });
}

/** Creates a key: prefix, 32 random bytes in base64url, checksum. @param random fills an array with random bytes */
export function mintKey(random: (bytes: Uint8Array<ArrayBuffer>) => void = fillRandom): string {
  const bytes = new Uint8Array(BODY_BYTES);
  random(bytes);
  const text = PREFIX + Buffer.from(bytes).toString("base64url");
  return text + checksum(text);
}

/** Properties of a new key. */
export interface NewKey {
  name: string;
  group: string;
  /** Absent: those of the group. */
  rules?: KeyRules;
  /** Unix time in milliseconds; absent: it does not expire. */
  expiresAt?: number;
  /** Unix time in milliseconds. */
  now: number;
}

/** Creates a key for a group, and its record for the store. The key itself is shown once and never stored. */
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

/** Returns true if a text has the form and the checksum of a key that a gateway issued. */
export function isIssued(credential: string): boolean {
  const end = PREFIX.length + BODY_LENGTH;
  return credential.length === end + CHECKSUM_LENGTH && ISSUED.test(credential) &&
    checksum(credential.slice(0, end)) === credential.slice(end);
}

/** Hashes a key with SHA-256, hexadecimal. Only the hash is stored. */
export function hashKey(key: string): string {
  return createHash("sha256").update(key).digest("hex");
}

function fillRandom(bytes: Uint8Array<ArrayBuffer>): void {
  crypto.getRandomValues(bytes);
}

/**
 * Returns whether the hash is the key's own, or a previous one that is still valid. A previous hash expires without a
 * change in the store.
 */
function isIn({ hash, former }: KeyRecord, presented: { hash: string; now: () => number }): boolean {
  return hash === presented.hash || (former !== undefined && former.until > presented.now());
}

/** Returns the store's version; `undefined` after an error, which reading the key then repeats and reports. */
function versionOf(store: KeyStore): number | undefined {
  try {
    return store.version?.();
  } catch {
    return undefined;
  }
}

/** Reads a key. A failing store must never look like a wrong key. */
async function readKey(
  store: KeyStore,
  { hash, now }: { hash: string; now: number },
): Promise<KeyRecord | undefined> {
  try {
    return await store.findByHash(hash, now);
  } catch (cause) {
    throw new GatewayError("overloaded", "Cannot check the API key: the key store does not answer", {
      refusal: { outage: "store" },
      cause,
    });
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
