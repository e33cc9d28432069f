/** Where the configuration of a node comes from: its own file, or the store that it shares with other nodes. */
import { type ConfigFlags, findConfig, loadConfig, type LoadedConfig, readConfig } from "../config/load.ts";
import type { Reloader, ReloaderParts, ReloadTrigger } from "../config/reloader.ts";
import { openSharedConfig } from "../config/shared_config.ts";
import type { LogEntry } from "../gateway.ts";
import { type Store, StoreError } from "../store/store.ts";

/** What is in force at the start, and how that is read anew. */
export interface ReloadableConfig extends Pick<ReloaderParts, "load" | "latest"> {
  loaded: LoadedConfig;
}

/** What it is found with. */
export interface ReloadableConfigParts {
  /** The node's own configuration. */
  loaded: LoadedConfig;
  flags: ConfigFlags;
  store: Store;
  log: (entry: LogEntry) => void;
}

/**
 * Finds the configuration that the node's own says it obeys. A file that was there at the start must be there: nothing
 * else takes its place. The environment is that of the moment.
 * @throws {ConfigError} where it has mistakes @throws {StoreError} where the store is out of reach
 */
export async function openLoadedConfig(
  { loaded, flags, store, log }: ReloadableConfigParts,
): Promise<ReloadableConfig> {
  const sources = {
    flags: { ...flags, ...(loaded.path !== undefined && { config: loaded.path }) },
    env: (name: string) => Deno.env.get(name),
    readTextFile: (file: string) => Deno.readTextFile(file),
  };
  if (loaded.config.nodes.config === "own") return { loaded, load: () => loadConfig(sources) };
  const configs = store.shared?.configs;
  if (configs === undefined) throw new StoreError("Cannot obey the store's configuration: it is one process's own");
  return await openSharedConfig({
    configs,
    find: () => findConfig(sources),
    read: (text, change) => readConfig(text, { ...sources, ...(change !== undefined && { change }) }),
    log,
  });
}

/** When a reload is tried again for which the store was out of reach, in milliseconds. */
const RETRY_MS = 1_000;

/** Reloads that nobody waits for. */
export interface ReloadRequests {
  ask(trigger: Exclude<ReloadTrigger, "admin">): void;
  /** Ends the tries. */
  end(): void;
}

/** Asks for reloads, again and again where the store is out of reach. */
export function createReloadRequests(reloader: Pick<Reloader, "reload">, retryMs = RETRY_MS): ReloadRequests {
  /** What was asked for and not done yet. */
  const open = new Set<Parameters<ReloadRequests["ask"]>[0]>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isOver = false;

  async function reload(trigger: Parameters<ReloadRequests["ask"]>[0]): Promise<void> {
    const reloaded = await reloader.reload(trigger);
    if (reloaded.outcome !== "refused" || reloaded.isAway !== true) {
      // Whatever an operator did before is in the store with it, or was refused.
      if (trigger === "store") open.delete(trigger);
      else open.clear();
      return;
    }
    open.add(trigger);
    if (isOver || timer !== undefined) return;
    timer = setTimeout(() => {
      timer = undefined;
      for (const trigger of [...open]) void reload(trigger);
    }, retryMs);
  }

  return {
    ask: (trigger) => void reload(trigger),
    end() {
      isOver = true;
      clearTimeout(timer);
    },
  };
}
