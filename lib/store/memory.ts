/** A store that ends with the process. */
import { openMemoryAnswers } from "./memory_answers.ts";
import type { KeyRecord, Store } from "./store.ts";

/** Opens an empty store. */
export function openMemoryStore(): Store {
  /** By hash, in the order they were added. */
  const keys = new Map<string, KeyRecord>();

  function replace(id: string, change: Partial<KeyRecord>): boolean {
    for (const [hash, key] of keys) {
      if (key.id !== id || key.revokedAt !== undefined) continue;
      keys.set(hash, { ...key, ...change });
      return true;
    }
    return false;
  }

  return {
    addKey(key) {
      for (const other of keys.values()) {
        const nameTaken = other.name === key.name && other.revokedAt === undefined;
        if (nameTaken || other.id === key.id || other.hash === key.hash) return false;
      }
      keys.set(key.hash, { ...key });
      return true;
    },
    findKeyByHash(hash) {
      const key = keys.get(hash);
      return key === undefined ? undefined : { ...key };
    },
    listKeys: () => [...keys.values()].map((key) => ({ ...key })),
    setDisabled: (id, disabled) => replace(id, { disabled }),
    revokeKey: (id, at) => replace(id, { revokedAt: at }),
    answers: openMemoryAnswers(),
    close: () => keys.clear(),
  };
}
