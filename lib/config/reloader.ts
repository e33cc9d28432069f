/** Replaces the configuration while the gateway serves, and reports the outcome. */
import type { Log } from "../log_events.ts";
import { createHash } from "node:crypto";
import { type Config, ConfigError } from "../config.ts";
import { messageOf } from "../errors.ts";
import { Secret } from "../secret.ts";
import type { ChangeOrigin } from "../store/operators.ts";
import { StoreError } from "../store/store.ts";
import type { LoadedConfig } from "./load.ts";
import { keepRestartOnlySettings } from "./restart_only_settings.ts";

/** Most reported problems of one file. */
const MOST_PROBLEMS = 50;

/** The cause of a reload. */
export type ReloadTrigger = "signal" | "file" | "admin" | "store";

/** Triggers by rank: a reload that serves several triggers runs as the highest of them. */
const TRIGGERS: readonly ReloadTrigger[] = ["store", "file", "signal", "admin"];

/** Status of the active configuration. */
export interface ConfigStatus {
  /** 1 at start; increases with every replacement. */
  version: number;
  /** When it was activated, ISO 8601. */
  loaded_at: string;
  /** Path of the file, name of the variable, `store`, or `built in`. */
  source: string;
  /** Absent: this node uses its own file. */
  shared?: SharedConfigStatus;
  /** Problems of the last rejected configuration; absent if the last one was accepted. */
  last_error?: { at: string; problems: string[] };
}

/** Status of a node that uses the store's configuration. */
export interface SharedConfigStatus {
  /** The active version; absent: this node cannot use any, and uses its own file. */
  version?: number;
  /** The latest known version in the store. */
  latest: number;
  /** True if the latest version is active. */
  is_current: boolean;
}

/** The store of the configuration is unreachable. The message is for the operator. */
export class ConfigStoreError extends StoreError {}

/** The outcome of a reload. */
export type ReloadResult =
  | { outcome: "changed" | "unchanged"; /** Changes that need a new start. */ ignored: string[] }
  | {
    outcome: "refused";
    problems: string[];
    /** True: the store is unreachable, so a retry may succeed. */
    isAway?: boolean;
  };

/** The trigger of a reload, and the operator who asked for it, if one did. */
export interface ReloadCause {
  trigger: ReloadTrigger;
  origin?: ChangeOrigin;
}

/** Reloads the configuration. */
export interface Reloader {
  status(): ConfigStatus;
  /**
   * Reads the configuration as it is now or later. One reading at a time. Never rejects.
   * @param origin the operator who asks; absent: none does
   */
  reload(trigger: ReloadTrigger, origin?: ChangeOrigin): Promise<ReloadResult>;
  /** Reads what a reload would put in force, and changes nothing. Never rejects. */
  preview(): Promise<ConfigPreview>;
}

/** The result of a reload. `shared`: the nodes of the store share a configuration, which a reload would replace. */
export type ConfigPreview =
  | { outcome: "shared" }
  | { outcome: "refused"; problems: readonly string[] }
  | {
    outcome: "read";
    /** The configuration as it is written, and where its models are. */
    loaded: LoadedConfig;
    /** The configuration that would be in force. */
    config: Config;
    /** Members whose change needs a new start. */
    ignored: string[];
    /** False: this is what is in force. */
    isNew: boolean;
  };

/** Parts of a reloader. */
export interface ReloaderParts {
  first: LoadedConfig;
  /** Reads and checks the configuration. @throws {ConfigError} @throws {ConfigStoreError} */
  load: (trigger: ReloadTrigger) => Promise<LoadedConfig>;
  /** The latest version in the store; absent if this node uses its own file. */
  latest?: () => number;
  /** Builds what serves by it, and puts that in place, or throws and changes nothing. */
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
  #inForce: string;
  #shared: number | undefined;
  #reading: Promise<ReloadResult> | undefined;
  #next: Promise<ReloadResult> | undefined;
  #asking: ReloadCause = { trigger: "store" };

  constructor(parts: ReloaderParts) {
    this.#parts = parts;
    this.#status = { version: 1, loaded_at: this.#time(), source: sourceOf(parts.first) };
    this.#inForce = configDigest(parts.first.config);
    this.#shared = parts.first.shared;
  }

  status(): ConfigStatus {
    if (this.#parts.latest === undefined) return this.#status;
    const last = this.#parts.latest();
    const version = this.#shared === undefined ? {} : { version: this.#shared };
    return { ...this.#status, shared: { ...version, latest: last, is_current: last === this.#shared } };
  }

  reload(trigger: ReloadTrigger, origin?: ChangeOrigin): Promise<ReloadResult> {
    const cause = { trigger, ...(origin !== undefined && { origin }) };
    if (this.#next !== undefined) {
      if (TRIGGERS.indexOf(trigger) > TRIGGERS.indexOf(this.#asking.trigger)) this.#asking = cause;
      return this.#next;
    }
    if (this.#reading !== undefined) {
      this.#asking = cause;
      // The file that is being read may be older than this trigger.
      this.#next = this.#reading.then(() => {
        this.#next = undefined;
        return this.#start(this.#asking);
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
      return { outcome: "read", loaded, config, ignored, isNew: configDigest(config) !== this.#inForce };
    } catch (error) {
      return { outcome: "refused", problems: problemsOf(error).slice(0, MOST_PROBLEMS) };
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
      const isNew = digest !== this.#inForce;
      if (isNew) await this.#parts.apply(config, cause);
      this.#inForce = digest;
      this.#shared = loaded.shared;
      const { last_error: _, ...rest } = this.#status;
      this.#status = { ...rest, source: sourceOf(loaded) };
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
    const facts = { trigger, version, source, ...(this.#shared !== undefined && { shared_version: this.#shared }) };
    this.#parts.log({ level: "info", event, ...facts });
  }

  /** Reloads are retried while the store is unreachable, so the failure is reported once. */
  #refuseForNow({ message }: ConfigStoreError, trigger: ReloadTrigger): ReloadResult {
    const isKnown = this.#status.last_error?.problems[0] === message;
    if (trigger !== "store" && !isKnown) this.#refuse([message], trigger);
    return { outcome: "refused", problems: [message], isAway: true };
  }

  #refuse(all: readonly string[], trigger: ReloadTrigger): ReloadResult {
    const problems = all.slice(0, MOST_PROBLEMS);
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
    const now = this.#read(cause).finally(() => {
      if (this.#reading === now) this.#reading = undefined;
    });
    this.#reading = now;
    return now;
  }
}

/** A reloader for a gateway with a fixed configuration, which rejects every reload. */
export function createStaticReloader(now: () => number): Reloader {
  const status: ConfigStatus = { version: 1, loaded_at: new Date(now()).toISOString(), source: "built in" };
  const problems = ["Cannot reload the configuration: this gateway was started without a file"];
  const refused = { outcome: "refused" as const, problems };
  return { status: () => status, reload: () => Promise.resolve(refused), preview: () => Promise.resolve(refused) };
}

function sourceOf({ path, variable, shared }: LoadedConfig): string {
  return shared !== undefined ? "store" : path ?? variable ?? "built in";
}

/** SHA-256 of a configuration, hexadecimal. Secrets count by their hashes. */
export function configDigest(config: Config): string {
  const text = JSON.stringify(config, function (this: Record<string, unknown>, name, value: unknown) {
    const given = this[name];
    return given instanceof Secret ? createHash("sha256").update(given.reveal()).digest("hex") : value;
  });
  return createHash("sha256").update(text).digest("hex");
}

/** Returns the problems of a configuration error; other errors are only named, as their texts are not for operators. */
function problemsOf(error: unknown): readonly string[] {
  if (error instanceof ConfigError) return error.problems;
  return [`Cannot use the configuration: ${messageOf(error)}`];
}
