/** API keys that end with the process. */
import type { KeyRecord, KeyStore } from "./keys.ts";

/** Opens an empty store of keys. */
export function openMemoryKeys(): KeyStore {
  /** By id, in the order they were added. */
  const keys = new Map<string, KeyRecord>();
  /** Ids by hash, those of former keys included. */
  const hashes = new Map<string, string>();

  function inUse(id: string): KeyRecord | undefined {
    const key = keys.get(id);
    return key?.revokedAt === undefined ? key : undefined;
  }

  function isTaken({ id, name, hash, former }: KeyRecord): boolean {
    return keys.has(id) || hashes.has(hash) || (former !== undefined && hashes.has(former.hash)) ||
      keys.values().some((key) => key.revokedAt === undefined && key.name === name);
  }

  function endFormer(key: KeyRecord): void {
    if (key.former !== undefined) hashes.delete(key.former.hash);
    delete key.former;
  }

  return {
    add(key) {
      if (isTaken(key)) return Promise.resolve(false);
      keys.set(key.id, structuredClone(key));
      hashes.set(key.hash, key.id);
      if (key.former !== undefined) hashes.set(key.former.hash, key.id);
      return Promise.resolve(true);
    },
    findByHash(hash, now) {
      const key = keys.get(hashes.get(hash) ?? "");
      const isGood = key?.hash === hash || (key?.former !== undefined && key.former.until > now);
      return Promise.resolve(isGood ? structuredClone(key) : undefined);
    },
    list: () => Promise.resolve([...keys.values()].map((key) => structuredClone(key))),
    summary(most) {
      const used = [...keys.values()].filter(({ revokedAt }) => revokedAt === undefined);
      const oldest = used.slice(0, most).map((key) => structuredClone(key));
      return Promise.resolve({ total: keys.size, inUse: used.length, oldest });
    },
    page({ after, limit }) {
      const some = [...keys.values().drop(after).take(limit)].map((key) => structuredClone(key));
      return Promise.resolve(some.length < limit ? { keys: some } : { keys: some, next: after + limit });
    },
    find(nameOrId) {
      // A name is taken again only after its key was revoked, so the last key of a name is the one in use, if any.
      const key = keys.get(nameOrId) ?? [...keys.values()].findLast(({ name }) => name === nameOrId);
      return Promise.resolve(structuredClone(key));
    },
    names(ids) {
      const known = ids.map((id) => keys.get(id)).filter((key) => key !== undefined);
      return Promise.resolve(new Map(known.map(({ id, name }) => [id, name])));
    },
    change(id, { disabled, group, rules, expiresAt }) {
      const key = inUse(id);
      if (key === undefined) return Promise.resolve(false);
      if (disabled !== undefined) key.disabled = disabled;
      if (group !== undefined) key.group = group;
      if (rules !== undefined) key.rules = structuredClone(rules);
      if (expiresAt === null) delete key.expiresAt;
      else if (expiresAt !== undefined) key.expiresAt = expiresAt;
      return Promise.resolve(true);
    },
    revoke(id, at) {
      const key = inUse(id);
      if (key === undefined) return Promise.resolve(false);
      key.revokedAt = at;
      endFormer(key);
      return Promise.resolve(true);
    },
    rotate(id, { hash, until }) {
      const key = inUse(id);
      if (key === undefined || hashes.has(hash)) return Promise.resolve(false);
      endFormer(key);
      key.former = { hash: key.hash, until };
      key.hash = hash;
      hashes.set(hash, id);
      return Promise.resolve(true);
    },
    touch(used) {
      for (const [id, at] of used) {
        const key = keys.get(id);
        if (key !== undefined) key.lastUsedAt = Math.max(key.lastUsedAt ?? 0, at);
      }
      return Promise.resolve();
    },
  };
}
