/** Keys that a process has read, in its memory: it asks the database for those that it does not know, and for no others. */
import type { KeyRecord, KeyStore } from "../keys.ts";
import type { Changes } from "./changes.ts";
import { inTime, isOutOfReach } from "./client.ts";
import { createKeyGate } from "./key_gate.ts";

/** How old that may be what is known of changes: a key is read anew then. In milliseconds. */
const FRESH_MS = 2_000;

/** How long a read may take, in milliseconds. */
const READ_MS = 2_000;

/** Most keys in memory; those that were not used for the longest go first. */
const MOST_KEYS = 100_000;

/** Most keys whose last use waits for the database. */
const MOST_USES = 100_000;

/** What the keys are made of. */
export interface KeyCacheParts {
  /** The keys in the database. */
  keys: KeyStore;
  changes: Changes;
  /** How old that may be what is known of changes while the database is out of reach, in milliseconds. */
  keyAgeMs: number;
  /** Most keys in memory; absent: 100,000. */
  mostKeys?: number;
}

/** A key as it was read. */
interface Known {
  record: KeyRecord;
  /** It may have changed without a word: it is read anew, and serves as it is only while the database is out of reach. */
  isDoubtful: boolean;
}

/**
 * Puts a memory in front of the keys of a database. What is changed through it binds at once, what others change when the
 * feed of changes tells it. While the database is out of reach, `findByHash` gives keys that are known for as long as
 * `keyAgeMs`; it rejects for others, and for all of them afterwards.
 */
export function cacheKeys({ keys, changes, keyAgeMs, mostKeys = MOST_KEYS }: KeyCacheParts): KeyStore {
  /** By id, the one that was used last at the end. */
  const known = new Map<string, Known>();
  /** Ids by hash, those of former keys included. */
  const ids = new Map<string, string>();
  /** Reads under way, by hash. */
  const reading = new Map<string, Promise<KeyRecord | undefined>>();
  const inTurn = createKeyGate();
  /** Counts what has changed: a read that was under way meanwhile may have missed it. */
  let moves = 0;
  /** Last uses that wait for the database. */
  let uses = new Map<string, number>();

  changes.watch({
    keys(changed) {
      move();
      if (changed === "all") { for (const each of known.values()) each.isDoubtful = true; }
      else for (const record of changed) if (known.has(record.id)) remember(record);
    },
    up: () => void flush(),
  });

  function move(): void {
    moves++;
    reading.clear();
  }

  function forget(id: string): void {
    const old = known.get(id)?.record;
    if (old === undefined) return;
    known.delete(id);
    ids.delete(old.hash);
    if (old.former !== undefined) ids.delete(old.former.hash);
  }

  function remember(record: KeyRecord): void {
    forget(record.id);
    known.set(record.id, { record, isDoubtful: false });
    ids.set(record.hash, record.id);
    if (record.former !== undefined) ids.set(record.former.hash, record.id);
    const [oldest] = known.keys();
    if (known.size > mostKeys && oldest !== undefined) forget(oldest);
  }

  function recall(hash: string): Known | undefined {
    const id = ids.get(hash);
    const key = id === undefined ? undefined : known.get(id);
    if (id === undefined || key === undefined) return undefined;
    known.delete(id);
    known.set(id, key);
    return key;
  }

  /** Reads a key from the database. Those who want the same one at once share the answer. */
  function read(hash: string, now: number): Promise<KeyRecord | undefined> {
    const found = reading.get(hash);
    if (found !== undefined) return found;
    const fresh = readAnew(hash, now).finally(() => {
      if (reading.get(hash) === fresh) reading.delete(hash);
    });
    reading.set(hash, fresh);
    return fresh;
  }

  async function readAnew(hash: string, now: number): Promise<KeyRecord | undefined> {
    const before = moves;
    const record = await inTime(keys.findByHash(hash, now), READ_MS);
    if (moves !== before) return record;
    if (record !== undefined) remember(record);
    else forget(ids.get(hash) ?? "");
    return record;
  }

  /** Once more where only the connection was lost. */
  async function readUnknown(hash: string, now: number): Promise<KeyRecord | undefined> {
    if (!changes.isUp) throw outOfReach();
    try {
      return await inTurn(() => read(hash, now));
    } catch (error) {
      if (!isOutOfReach(error) || !await changes.judge()) throw error;
      return await inTurn(() => read(hash, now));
    }
  }

  async function readKnown(
    { record }: Known,
    { hash, now }: { hash: string; now: number },
  ): Promise<KeyRecord | undefined> {
    if (changes.isUp) {
      try {
        return await read(hash, now);
      } catch (error) {
        if (!isOutOfReach(error)) throw error;
        void changes.judge();
      }
    }
    if (changes.ageMs() > keyAgeMs) throw outOfReach();
    return record;
  }

  /** Whatever came of it, what is known of the key is not to be relied upon. */
  async function change<T>(id: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } finally {
      move();
      forget(id);
    }
  }

  async function flush(): Promise<void> {
    const waiting = uses;
    uses = new Map();
    try {
      if (waiting.size > 0) await keys.touch(waiting);
    } catch (error) {
      keepUses(waiting);
      if (!isOutOfReach(error)) throw error;
    }
  }

  function keepUses(used: ReadonlyMap<string, number>): void {
    for (const [id, at] of used) {
      if (uses.has(id) || uses.size < MOST_USES) uses.set(id, Math.max(uses.get(id) ?? 0, at));
    }
  }

  return {
    async findByHash(hash, now) {
      const key = recall(hash);
      if (key === undefined) return judged(await readUnknown(hash, now), { hash, now });
      const isSure = !key.isDoubtful && changes.ageMs() <= FRESH_MS;
      return judged(isSure ? key.record : await readKnown(key, { hash, now }), { hash, now });
    },
    list: () => keys.list(),
    add: (key) => change(key.id, () => keys.add(key)),
    change: (id, wish) => change(id, () => keys.change(id, wish)),
    revoke: (id, at) => change(id, () => keys.revoke(id, at)),
    rotate: (id, to) => change(id, () => keys.rotate(id, to)),
    async touch(used) {
      for (const [id, at] of used) {
        const key = known.get(id);
        if (key !== undefined) key.record = { ...key.record, lastUsedAt: Math.max(key.record.lastUsedAt ?? 0, at) };
      }
      keepUses(used);
      if (changes.isUp) await flush();
    },
  };
}

/** A copy of the key, where the hash is its own, or that of a former one that is good at `now`. */
function judged(record: KeyRecord | undefined, { hash, now }: { hash: string; now: number }): KeyRecord | undefined {
  if (record === undefined) return undefined;
  const isGood = record.hash === hash || (record.former?.hash === hash && record.former.until > now);
  return isGood ? structuredClone(record) : undefined;
}

function outOfReach(): Error {
  return new Error("Cannot read the key: the database is out of reach");
}
