/** Shared configurations for nodes that all run in this process. */
import type { SharedConfig, SharedConfigs } from "../../lib/store/store.ts";

/** Configurations in memory, which can be out of reach. */
export interface MemoryConfigs extends SharedConfigs {
  /** True if every call fails. */
  isAway: boolean;
  /** Texts in the order in which they were put. */
  readonly texts: readonly string[];
  /** Number of active watchers. */
  readonly watchers: number;
}

/** Starts without any. */
export function openMemoryConfigs(): MemoryConfigs {
  const put: SharedConfig[] = [];
  const watching = new Set<() => void>();

  function requireReach(): void {
    if (configs.isAway) throw new Error("Connection refused");
  }

  const configs: MemoryConfigs = {
    isAway: false,
    get texts() {
      return put.map(({ text }) => text);
    },
    get watchers() {
      return watching.size;
    },
    // deno-lint-ignore require-await -- what is thrown here must reject
    async latest() {
      requireReach();
      return put.at(-1);
    },
    // deno-lint-ignore require-await -- what is thrown here must reject
    async put(text) {
      requireReach();
      const last = put.at(-1);
      if (last?.text === text) return last.version;
      const version = put.length + 1;
      put.push({ version, text, at: version });
      for (const changed of watching) queueMicrotask(changed);
      return version;
    },
    watch(changed) {
      watching.add(changed);
      return () => void watching.delete(changed);
    },
  };
  return configs;
}
