/** Reloads the configuration while the gateway serves, one reload at a time, and reports the outcome. */
import type { Log } from "../log_events.ts";
import { type Config, ConfigError } from "../config.ts";
import { messageOf } from "../errors.ts";
import type { ChangeOrigin } from "../store/operators.ts";
import { StoreError } from "../store/store.ts";
import { configDigest } from "./digest.ts";
import type { LoadedConfig } from "./load.ts";
import { keepRestartOnlySettings } from "./restart_only_settings.ts";

/** Largest number of problems that are reported for one file. */
const MAX_PROBLEMS = 50;

/** The cause of a reload. */
export type ReloadTrigger = "signal" | "file" | "admin" | "store";

/** Triggers by rank, lowest first. If several wait for the same reload, it runs with the highest. */
const TRIGGERS_BY_RANK: readonly ReloadTrigger[] = ["store", "file", "signal", "admin"];

/** Status of the active configuration. */
export interface ConfigStatus {
  /** 1 at start; incremented by every change. */
  version: number;
  /** When it was activated, ISO 8601. */
  loaded_at: string;
  /** Path of the file, name of the variable, `store`, or `built in`. */
  source: string;
  /** Version of the store's configuration; absent: this node uses its own file. */
  shared?: SharedConfigStatus;
  /** Time and problems of the last reload if it was rejected; absent if it was accepted. */
  last_error?: { at: string; problems: string[] };
}

/** Status of a node that uses the store's configuration. */
export interface SharedConfigStatus {
  /** The active version; absent: this node could not use the store's and uses its own file. */
  version?: number;
  /** The latest known version in the store. */
  latest: number;
  /** True if the latest version is active. */
  is_current: boolean;
}

/** The store that holds the configuration is unreachable. The message is for the operator. */
export class ConfigStoreError extends StoreError {}

/** The outcome of a reload. */
export type ReloadResult =
  | { outcome: "changed" | "unchanged"; /** Changed members that need a restart. */ ignored: string[] }
  | {
    outcome: "refused";
    problems: string[];
    /** True if the store is unreachable, so that a retry may succeed; absent: false. */
    isAway?: boolean;
  };

/** The trigger of a reload, and who requested it. */
export interface ReloadCause {
  trigger: ReloadTrigger;
  /** The operator who requested it; absent: none did. */
  origin?: ChangeOrigin;
}

/** Reloads the configuration. */
export interface Reloader {
  status(): ConfigStatus;
  /**
   * Reads the configuration and applies it if it is valid. If a reload is running, another one follows, because the
   * file may have changed after it was read. Never rejects.
   * @param origin the operator who requested it; absent: none did
   */
  reload(trigger: ReloadTrigger, origin?: ChangeOrigin): Promise<ReloadResult>;
  /** Reads the configuration that a reload would apply, and changes nothing. Never rejects. */
  preview(): Promise<ConfigPreview>;
}

/**
 * The effect that a reload would have. `shared`: nodes share the store's configuration, which a reload by an operator
 * would replace, so nothing was read.
 */
export type ConfigPreview =
  | { outcome: "shared" }
  | { outcome: "refused"; problems: readonly string[] }
  | {
    outcome: "read";
    /** The configuration as read, and its origin. */
    loaded: LoadedConfig;
    /** The configuration that would be active: as read, but with the settings that only a restart changes. */
    config: Config;
    /** Changed members that need a restart. */
    ignored: string[];
    /** True if it differs from the active configuration. */
    isNew: boolean;
  };

/** Parts of a reloader. */
export interface ReloaderParts {
  /** The configuration that the process started with. */
  first: LoadedConfig;
  /**
   * Reads and validates the configuration.
   * @throws {ConfigError} if it is invalid
   * @throws {ConfigStoreError} if the store that holds it is unreachable
   */
  load: (trigger: ReloadTrigger) => Promise<LoadedConfig>;
  /** Returns the latest version in the store; absent if this node uses its own file. */
  latest?: () => number;
  /** Makes the gateway serve with a configuration. If it throws, nothing has changed. */
  apply: (config: Config, from: ReloadCause) => void | Promise<void>;
  /** Called where an operator asks for a reload, and the configuration is the same. */
  unchanged?: () => void;
  /** Unix time in milliseconds. */
  now: () => number;
  log: Log;
}

/** Creates a reloader. A configuration with problems is rejected and reported; the current one stays active. */
export function createReloader(parts: ReloaderParts): Reloader {
  return new ConfigReloader(parts);
}

class ConfigReloader implements Reloader {
  readonly #parts: ReloaderParts;
  #status: ConfigStatus;
  #activeDigest: string;
  /** Active version of the store's configuration; `undefined`: the node's own file is active. */
  #sharedVersion: number | undefined;
  #running: Promise<ReloadResult> | undefined;
  #next: Promise<ReloadResult> | undefined;
  /** The highest-ranking cause of the next reload. */
  #nextCause: ReloadCause = { trigger: "store" };

  constructor(parts: ReloaderParts) {
    this.#parts = parts;
    this.#status = { version: 1, loaded_at: this.#time(), source: sourceOf(parts.first) };
    this.#activeDigest = configDigest(parts.first.config);
    this.#sharedVersion = parts.first.shared;
  }

  status(): ConfigStatus {
    if (this.#parts.latest === undefined) return this.#status;
    const latest = this.#parts.latest();
    const version = this.#sharedVersion === undefined ? {} : { version: this.#sharedVersion };
    return { ...this.#status, shared: { ...version, latest, is_current: latest === this.#sharedVersion } };
  }

  reload(trigger: ReloadTrigger, origin?: ChangeOrigin): Promise<ReloadResult> {
    const cause = { trigger, ...(origin !== undefined && { origin }) };
    if (this.#next !== undefined) {
      if (TRIGGERS_BY_RANK.indexOf(trigger) > TRIGGERS_BY_RANK.indexOf(this.#nextCause.trigger)) {
        this.#nextCause = cause;
      }
      return this.#next;
    }
    if (this.#running !== undefined) {
      this.#nextCause = cause;
      // The running reload may have read the file before this trigger.
      this.#next = this.#running.then(() => {
        this.#next = undefined;
        return this.#start(this.#nextCause);
      });
      return this.#next;
    }
    return this.#start(cause);
  }

  async preview(): Promise<ConfigPreview> {
    if (this.#parts.latest !== undefined) return { outcome: "shared" };
    try {
      const loaded = await this.#parts.load("file");
      const { config, ignored } = keepRestartOnlySettings(this.#parts.first.config, loaded.config);
      return { outcome: "read", loaded, config, ignored, isNew: configDigest(config) !== this.#activeDigest };
    } catch (error) {
      return { outcome: "refused", problems: problemsOf(error).slice(0, MAX_PROBLEMS) };
    }
  }

  #time(): string {
    return new Date(this.#parts.now()).toISOString();
  }

  async #read(cause: ReloadCause): Promise<ReloadResult> {
    const { trigger } = cause;
    try {
      const loaded = await this.#parts.load(trigger);
      const { config, ignored } = keepRestartOnlySettings(this.#parts.first.config, loaded.config);
      const digest = configDigest(config);
      const isNew = digest !== this.#activeDigest;
      if (isNew) await this.#parts.apply(config, cause);
      this.#activeDigest = digest;
      this.#sharedVersion = loaded.shared;
      const { last_error: _, ...status } = this.#status;
      this.#status = { ...status, source: sourceOf(loaded) };
      if (!isNew) {
        this.#warn(ignored);
        if (trigger === "signal" || trigger === "admin") {
          this.#logReload("reload_unchanged", trigger);
          this.#parts.unchanged?.();
        }
        return { outcome: "unchanged", ignored };
      }
      this.#status = { ...this.#status, version: this.#status.version + 1, loaded_at: this.#time() };
      this.#logReload("reloaded", trigger);
      this.#warn(ignored);
      return { outcome: "changed", ignored };
    } catch (error) {
      if (error instanceof ConfigStoreError) return this.#refuseForNow(error, trigger);
      return this.#refuse(problemsOf(error), trigger);
    }
  }

  #logReload(event: "reloaded" | "reload_unchanged", trigger: ReloadTrigger): void {
    const { version, source } = this.#status;
    const facts = {
      trigger,
      version,
      source,
      ...(this.#sharedVersion !== undefined && { shared_version: this.#sharedVersion }),
    };
    this.#parts.log({ level: "info", event, ...facts });
  }

  /** Rejects a reload because the store is unreachable. The failure is reported once, although reloads are retried. */
  #refuseForNow({ message }: ConfigStoreError, trigger: ReloadTrigger): ReloadResult {
    const isKnown = this.#status.last_error?.problems[0] === message;
    if (trigger !== "store" && !isKnown) this.#refuse([message], trigger);
    return { outcome: "refused", problems: [message], isAway: true };
  }

  #refuse(all: readonly string[], trigger: ReloadTrigger): ReloadResult {
    const problems = all.slice(0, MAX_PROBLEMS);
    if (all.length > problems.length) problems.push(`and ${all.length - problems.length} more problems`);
    this.#status = { ...this.#status, last_error: { at: this.#time(), problems } };
    const { version } = this.#status;
    for (const problem of problems) {
      this.#parts.log({ level: "error", event: "reload_refused", trigger, version, problem });
    }
    return { outcome: "refused", problems };
  }

  #warn(ignored: readonly string[]): void {
    for (const member of ignored) {
      this.#parts.log({
        level: "warn",
        event: "reload_ignored",
        version: this.#status.version,
        member,
        reason: "It takes effect after a restart",
      });
    }
  }

  #start(cause: ReloadCause): Promise<ReloadResult> {
    const reload = this.#read(cause).finally(() => {
      if (this.#running === reload) this.#running = undefined;
    });
    this.#running = reload;
    return reload;
  }
}

/** Creates a reloader that rejects every reload, for a gateway with a fixed configuration. */
export function createStaticReloader(now: () => number): Reloader {
  const status: ConfigStatus = { version: 1, loaded_at: new Date(now()).toISOString(), source: "built in" };
  const problems = ["Cannot reload the configuration: this gateway was started without a file"];
  const refused = { outcome: "refused" as const, problems };
  return { status: () => status, reload: () => Promise.resolve(refused), preview: () => Promise.resolve(refused) };
}

function sourceOf({ path, variable, shared }: LoadedConfig): string {
  return shared !== undefined ? "store" : path ?? variable ?? "built in";
}

/** Returns the problems of a configuration error; the message of any other error. */
function problemsOf(error: unknown): readonly string[] {
  if (error instanceof ConfigError) return error.problems;
  return [`Cannot use the configuration: ${messageOf(error)}`];
}
