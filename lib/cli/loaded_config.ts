/** Loads the configuration of a node from its own file, or from the store that nodes share. */
import { type ConfigFlags, findConfig, loadConfig, type LoadedConfig, readConfig } from "../config/load.ts";
import type { Reloader, ReloaderParts, ReloadTrigger } from "../config/reloader.ts";
import { openSharedConfig } from "../config/shared_config.ts";
import type { LogEntry } from "../log_events.ts";
import { type Store, StoreError } from "../store/store.ts";

/** The configuration at the start, and the functions for reloading it. */
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
 * Loads the configuration from the source that the node's own file names: this file, or the store. A reload reads the
 * environment again. It fails if the file existed at the start and is missing.
 * @throws {ConfigError} if the configuration has mistakes
 * @throws {StoreError} if the store is unreachable
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

/** Time after which a reload is retried if the store was unreachable, in milliseconds. */
const RETRY_MS = 1_000;

/** Runs reloads in the background. */
export interface ReloadRequests {
  /** Starts a reload, which is retried while the store is unreachable. */
  request(trigger: Exclude<ReloadTrigger, "admin">): void;
  /** Stops the retries. */
  end(): void;
}

/** Creates the means to run reloads in the background. */
export function createReloadRequests(reloader: Pick<Reloader, "reload">, retryMs = RETRY_MS): ReloadRequests {
  /** Triggers of reloads that have not succeeded yet. */
  const pending = new Set<Parameters<ReloadRequests["request"]>[0]>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let hasEnded = false;

  async function reload(trigger: Parameters<ReloadRequests["request"]>[0]): Promise<void> {
    const reloaded = await reloader.reload(trigger);
    if (reloaded.outcome !== "refused" || reloaded.isAway !== true) {
      // A reload of the node's own file makes all earlier triggers obsolete; one of the store's configuration only its
      // own.
      if (trigger === "store") pending.delete(trigger);
      else pending.clear();
      return;
    }
    pending.add(trigger);
    if (hasEnded || timer !== undefined) return;
    timer = setTimeout(() => {
      timer = undefined;
      for (const trigger of [...pending]) void reload(trigger);
    }, retryMs);
  }

  return {
    request: (trigger) => void reload(trigger),
    end() {
      hasEnded = true;
      clearTimeout(timer);
    },
  };
}
