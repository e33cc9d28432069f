/** Keys that a process has read, in its memory: it asks the database for those that it does not know, and for no others. */
import type { KeyRecord, KeyStore } from "../keys.ts";
import type { Changes } from "./changes.ts";
import { inTime, isOutOfReach } from "./client.ts";
import { createReadQueue } from "./read_queue.ts";
import type { ReadKey } from "./keys.ts";

/** Age of the change feed beyond which keys are read again, in milliseconds. */
const FRESH_MS = 2_000;

/** Timeout of a read, in milliseconds. */
const READ_MS = 2_000;

/** Most keys in memory; those that were not used for the longest go first. */
const MOST_KEYS = 100_000;

/** Most hashes that no key has, in memory; those that came first go first. */
const MOST_UNKNOWN = 1_000;

/** Most keys whose last use waits for the database. */
const MOST_USES = 100_000;

/** Parts of the key cache. */
export interface KeyCacheParts {
  /** The keys in the database. */
  keys: Omit<KeyStore, "findByHash">;
  /** Reads one of them, by its hash, or by that of a former key that is good at `now`. */
  find: (asked: Asked) => Promise<ReadKey | undefined>;
  changes: Changes;
  /** Keys that serve while the database is out of reach, even where nobody asked for them before. */
  first?: readonly ReadKey[];
  /** Age of the change feed up to which cached keys are valid while the database is unreachable, in milliseconds. */
  keyAgeMs: number;
  /** Most keys in memory; absent: 100,000. */
  mostKeys?: number;
}

/** In the place of an id: any of them. No key has it. */
const ANY = "";

/** A number that no change has: whatever was read is not as new. */
const LAST = 2n ** 63n;

interface Asked {
  hash: string;
  now: number;
}

/** A key in memory. */
interface Known extends ReadKey {
  /** It may have changed without a word: it is read anew, and serves as it is only while the database is out of reach. */
  isDoubtful: boolean;
}

/**
 * Puts a memory in front of the keys of a database. What is changed through it binds at once, what others change when the
 * feed of changes tells it. While the database is out of reach, `findByHash` gives keys that are known for as long as
 * `keyAgeMs`; it rejects for others, and for all of them afterwards.
 */
export function cacheKeys(
  { keys, find, changes, first = [], keyAgeMs, mostKeys = MOST_KEYS }: KeyCacheParts,
): KeyStore {
  /** By id, the one that was used last at the end. */
  const known = new Map<string, Known>();
  /** Ids by hash, those of former keys included. */
  const ids = new Map<string, string>();
  /** Hashes that no key has, as of the last change of any key. */
  const unknown = new Set<string>();
  /** Reads under way, by hash: those who want the same key at once share one. */
  const reading = new Map<string, Promise<KeyRecord | undefined>>();
  /** For each read under way, keys that have changed since, by id, and the numbers of the changes: it may have missed them. */
  const missing = new Set<Map<string, bigint>>();
  /** Keys that are changed here, by id: what the feed tells of them may be older than that. */
  const changing = new Map<string, symbol>();
  const inTurn = createReadQueue();
  /** Last uses that wait for the database. */
  let uses = new Map<string, number>();

  changes.watch({
    keys(changed) {
      if (changed === "all") {
        for (const key of known.values()) key.isDoubtful = true;
        note(ANY, LAST);
        return;
      }
      for (const key of changed) {
        note(key.record.id, key.changed);
        const old = known.get(key.record.id);
        // What was read meanwhile may be newer.
        if (old === undefined) keepReady(key);
        else if (old.isDoubtful || old.changed < key.changed) remember(key);
      }
    },
    up: () => void flush(),
  });

  for (const key of first) keepReady(key);

  /** For an outage only, as it may have changed meanwhile: whoever wants it before reads it anew. */
  function keepReady(key: ReadKey): void {
    if (known.size < mostKeys && !changing.has(key.record.id)) remember(key, true);
  }

  /** A key has changed: reads that are under way are not to be relied upon, and nobody joins them. */
  function note(id: string, changed: bigint): void {
    for (const missed of missing) missed.set(id, changed);
    unknown.clear();
    reading.clear();
  }

  function noteUnknown(hash: string): void {
    const [oldest] = unknown;
    if (unknown.size === MOST_UNKNOWN && oldest !== undefined) unknown.delete(oldest);
    unknown.add(hash);
  }

  function forget(id: string): void {
    const old = known.get(id)?.record;
    if (old === undefined) return;
    known.delete(id);
    ids.delete(old.hash);
    if (old.former !== undefined) ids.delete(old.former.hash);
  }

  function remember({ record, changed }: ReadKey, isDoubtful = false): void {
    forget(record.id);
    known.set(record.id, { record, changed, isDoubtful });
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

  function read(asked: Asked): Promise<KeyRecord | undefined> {
    const { hash } = asked;
    const found = reading.get(hash);
    if (found !== undefined) return found;
    const fresh = readAnew(asked).finally(() => {
      if (reading.get(hash) === fresh) reading.delete(hash);
    });
    reading.set(hash, fresh);
    return fresh;
  }

  async function readAnew(asked: Asked): Promise<KeyRecord | undefined> {
    const missed = new Map<string, bigint>();
    missing.add(missed);
    try {
      const key = await inTime(find(asked), READ_MS);
      if (key === undefined && missed.size === 0) noteUnknown(asked.hash);
      const id = key?.record.id ?? ids.get(asked.hash);
      const least = missed.get(ANY) ?? missed.get(id ?? "") ?? 0n;
      if (id === undefined || (key?.changed ?? 0n) < least) return key?.record;
      if (key === undefined) forget(id);
      else remember(key);
      return key?.record;
    } finally {
      missing.delete(missed);
    }
  }

  /** Once more where only the connection was lost. */
  async function readUnknown(asked: Asked): Promise<KeyRecord | undefined> {
    if (!changes.isUp) throw outOfReach();
    try {
      return await inTurn(() => read(asked));
    } catch (error) {
      if (!isOutOfReach(error) || !await changes.judge()) throw error;
      return await inTurn(() => read(asked));
    }
  }

  async function readKnown({ record }: Known, asked: Asked): Promise<KeyRecord | undefined> {
    if (changes.isUp) {
      try {
        return await read(asked);
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
    const mine = Symbol();
    changing.set(id, mine);
    try {
      return await work();
    } finally {
      note(id, LAST);
      forget(id);
      void changes.look().catch(() => {}).then(() => {
        if (changing.get(id) === mine) changing.delete(id);
      });
    }
  }

  async function add(key: KeyRecord): Promise<boolean> {
    const isAdded = await change(key.id, () => keys.add(key));
    if (isAdded && known.size < mostKeys) remember({ record: structuredClone(key), changed: 0n }, true);
    return isAdded;
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
      const asked = { hash, now };
      const key = recall(hash);
      if (unknown.has(hash) && changes.isUp && changes.ageMs() <= FRESH_MS) return undefined;
      if (key === undefined) return judged(await readUnknown(asked), asked);
      const isSure = !key.isDoubtful && changes.ageMs() <= FRESH_MS;
      return judged(isSure ? key.record : await readKnown(key, asked), asked);
    },
    list: () => keys.list(),
    summary: (most) => keys.summary(most),
    page: (from) => keys.page(from),
    find: (nameOrId) => keys.find(nameOrId),
    names: (ids) => keys.names(ids),
    add,
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
function judged(record: KeyRecord | undefined, { hash, now }: Asked): KeyRecord | undefined {
  if (record === undefined) return undefined;
  const isGood = record.hash === hash || (record.former?.hash === hash && record.former.until > now);
  return isGood ? structuredClone(record) : undefined;
}

function outOfReach(): Error {
  return new Error("Cannot read the key: the database is out of reach");
}
