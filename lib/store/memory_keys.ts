/** API keys that end with the process. */
import type { KeyRecord, KeyStore } from "./keys.ts";

/** Opens an empty store of keys. */
export function openMemoryKeys(): KeyStore {
  /** By id, in the order they were added. */
  const keys = new Map<string, KeyRecord>();

  function inUse(id: string): KeyRecord | undefined {
    const key = keys.get(id);
    return key?.revokedAt === undefined ? key : undefined;
  }

  function isTaken(hash: string): boolean {
    return [...keys.values()].some((key) => key.hash === hash || key.former?.hash === hash);
  }

  return {
    add(key) {
      const taken = keys.has(key.id) || isTaken(key.hash) ||
        [...keys.values()].some(({ name, revokedAt }) => revokedAt === undefined && name === key.name);
      if (!taken) keys.set(key.id, structuredClone(key));
      return Promise.resolve(!taken);
    },
    findByHash(hash, now) {
      const all = [...keys.values()];
      const key = all.find((key) => key.hash === hash) ??
        all.find(({ former }) => former?.hash === hash && former.until > now);
      return Promise.resolve(key === undefined ? undefined : structuredClone(key));
    },
    list: () => Promise.resolve([...keys.values()].map((key) => structuredClone(key))),
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
      delete key.former;
      return Promise.resolve(true);
    },
    rotate(id, { hash, until }) {
      const key = inUse(id);
      if (key === undefined || isTaken(hash)) return Promise.resolve(false);
      key.former = { hash: key.hash, until };
      key.hash = hash;
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
