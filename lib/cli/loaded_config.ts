/** Loads the configuration of a node from its own file, or from the store that nodes share. */
import { type ConfigFlags, findConfig, loadConfig, type LoadedConfig, readConfig } from "../config/load.ts";
import type { Reloader, ReloaderParts, ReloadTrigger } from "../config/reloader.ts";
import { openSharedConfig } from "../config/shared_config.ts";
import type { LogEntry } from "../log_events.ts";
import { type Store, StoreError } from "../store/store.ts";

/** The configuration at the start, and the functions that load it again. */
export interface ReloadableConfig extends Pick<ReloaderParts, "load" | "latest"> {
  loaded: LoadedConfig;
}

/** Inputs of {@linkcode openLoadedConfig}. */
export interface ReloadableConfigParts {
  /** The node's own configuration. */
  loaded: LoadedConfig;
  flags: ConfigFlags;
  store: Store;
  log: (entry: LogEntry) => void;
}

/**
 * Loads the configuration from the source that the node's own file names. A reload fails if a file that existed at the
 * start is missing, and reads the environment again.
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
  if (configs === undefined) {
    throw new StoreError("Cannot use the configuration of the store: the store belongs to one process");
  }
  return await openSharedConfig({
    configs,
    find: () => findConfig(sources),
    read: (text, change) => readConfig(text, { ...sources, change }),
    log,
  });
}

/** Time until a reload is retried after the store was unreachable, in milliseconds. */
const RETRY_MS = 1_000;

/** Requests for reloads that run in the background. */
export interface ReloadRequests {
  ask(trigger: Exclude<ReloadTrigger, "admin">): void;
  /** Stops the retries. */
  end(): void;
}

/** Requests reloads and retries them while the store is unreachable. */
export function createReloadRequests(reloader: Pick<Reloader, "reload">, retryMs = RETRY_MS): ReloadRequests {
  /** Triggers of reloads that have not succeeded yet. */
  const open = new Set<Parameters<ReloadRequests["ask"]>[0]>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isOver = false;

  async function reload(trigger: Parameters<ReloadRequests["ask"]>[0]): Promise<void> {
    const reloaded = await reloader.reload(trigger);
    if (reloaded.outcome !== "refused" || reloaded.isAway !== true) {
      // Earlier triggers are in the store with it, or were refused.
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
