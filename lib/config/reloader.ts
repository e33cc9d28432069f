/** How a configuration takes the place of another while the gateway serves, and what is told of that. */
import { createHash } from "node:crypto";
import { type Config, ConfigError } from "../config.ts";
import { messageOf } from "../errors.ts";
import { Secret } from "../secret.ts";
import { StoreError } from "../store/store.ts";
import type { LoadedConfig } from "./load.ts";
import { keepRestartOnlySettings } from "./restart_only_settings.ts";

/** Most mistakes of one file that are told, each on a line of its own. */
const MOST_PROBLEMS = 50;

/** What asks for a reload. */
export type ReloadTrigger = "signal" | "file" | "admin" | "store";

/** What is asked for beside another one is done with it, where it comes later here. */
const TRIGGERS: readonly ReloadTrigger[] = ["store", "file", "signal", "admin"];

/** Which configuration is in force. */
export interface ConfigStatus {
  /** 1 at the start; grows with every configuration that takes the place of another. */
  version: number;
  /** When it came into force, ISO 8601. */
  loaded_at: string;
  /** Path of its file, or name of the variable that holds its text; `store`; `built in` where there is none of them. */
  source: string;
  /** Absent: this node obeys its own file. */
  shared?: SharedConfigStatus;
  /** Why the latest one was refused; absent where it was not. */
  last_error?: { at: string; problems: string[] };
}

/** How a node stands to the configuration that all nodes shall obey. */
export interface SharedConfigStatus {
  /** The version in force; absent: this node could not use any, and obeys its own file. */
  version?: number;
  /** The version that was put into the store last, as far as this node knows. */
  latest: number;
  /** Whether that is the one in force. */
  is_current: boolean;
}

/** The store of the configuration is out of reach. The message is for the operator. */
export class ConfigStoreError extends StoreError {}

/** What became of a reload. */
export type ReloadResult =
  | { outcome: "changed" | "unchanged"; /** Changes that need a new start. */ ignored: string[] }
  | {
    outcome: "refused";
    problems: string[];
    /** True: another try may work, as the store was out of reach. */
    isAway?: boolean;
  };

/** Reads the configuration anew. */
export interface Reloader {
  status(): ConfigStatus;
  /** Reads the configuration as it is now or later. One reading at a time. Never rejects. */
  reload(trigger: ReloadTrigger): Promise<ReloadResult>;
}

/** One line of the log. */
interface Line {
  level: "info" | "warn" | "error";
  event: string;
  [fact: string]: string | number | undefined;
}

/** What a reloader is made of. */
export interface ReloaderParts {
  /** What the gateway was started with. */
  first: LoadedConfig;
  /** Reads and checks the configuration. @throws {ConfigError} @throws {ConfigStoreError} */
  load: (trigger: ReloadTrigger) => Promise<LoadedConfig>;
  /** The version that was put into the store last; absent where this node obeys its own file. */
  latest?: () => number;
  /** Builds what serves by it, and puts that in place, or throws and changes nothing. */
  apply: (config: Config) => void | Promise<void>;
  /** Unix time in milliseconds. */
  now: () => number;
  log: (line: Line) => void;
}

/** Makes a reloader. What cannot be used is refused and told; what was in force goes on. */
export function createReloader({ first, load, latest, apply, now, log }: ReloaderParts): Reloader {
  let status: ConfigStatus = { version: 1, loaded_at: time(), source: sourceOf(first) };
  let inForce = configDigest(first.config);
  let shared = first.shared;
  let reading: Promise<ReloadResult> | undefined;
  let next: Promise<ReloadResult> | undefined;
  /** What asked for the next one. */
  let asking: ReloadTrigger = "store";

  function time(): string {
    return new Date(now()).toISOString();
  }

  async function read(trigger: ReloadTrigger): Promise<ReloadResult> {
    try {
      const loaded = await load(trigger);
      const { config, ignored } = keepRestartOnlySettings(first.config, loaded.config);
      const digest = configDigest(config);
      const isNew = digest !== inForce;
      if (isNew) await apply(config);
      inForce = digest;
      shared = loaded.shared;
      const { last_error: _, ...rest } = status;
      status = { ...rest, source: sourceOf(loaded) };
      if (!isNew) {
        warn(ignored);
        if (trigger === "signal" || trigger === "admin") tell("reload_unchanged", trigger);
        return { outcome: "unchanged", ignored };
      }
      status = { ...status, version: status.version + 1, loaded_at: time() };
      tell("reloaded", trigger);
      warn(ignored);
      return { outcome: "changed", ignored };
    } catch (error) {
      if (error instanceof ConfigStoreError) return refuseForNow(error, trigger);
      return refuse(problemsOf(error), trigger);
    }
  }

  function tell(event: string, trigger: ReloadTrigger): void {
    const { version, source } = status;
    const facts = { trigger, version, source, ...(shared !== undefined && { shared_version: shared }) };
    log({ level: "info", event, ...facts });
  }

  /** It is tried again: that is told once. That the store is away, others tell. */
  function refuseForNow({ message }: ConfigStoreError, trigger: ReloadTrigger): ReloadResult {
    const isKnown = status.last_error?.problems[0] === message;
    if (trigger !== "store" && !isKnown) refuse([message], trigger);
    return { outcome: "refused", problems: [message], isAway: true };
  }

  function refuse(all: readonly string[], trigger: ReloadTrigger): ReloadResult {
    const problems = all.slice(0, MOST_PROBLEMS);
    if (all.length > problems.length) problems.push(`And ${all.length - problems.length} more mistakes`);
    status = { ...status, last_error: { at: time(), problems } };
    const { version } = status;
    for (const problem of problems) log({ level: "error", event: "reload_refused", trigger, version, problem });
    return { outcome: "refused", problems };
  }

  function warn(ignored: readonly string[]): void {
    for (const member of ignored) {
      log({
        level: "warn",
        event: "reload_ignored",
        version: status.version,
        member,
        reason: "It changes when the gateway is started anew",
      });
    }
  }

  return {
    status() {
      if (latest === undefined) return status;
      const last = latest();
      const version = shared === undefined ? {} : { version: shared };
      return { ...status, shared: { ...version, latest: last, is_current: last === shared } };
    },
    reload(trigger) {
      if (next !== undefined) {
        if (TRIGGERS.indexOf(trigger) > TRIGGERS.indexOf(asking)) asking = trigger;
        return next;
      }
      if (reading !== undefined) {
        asking = trigger;
        // What is being read may be older than what this one asks for.
        next = reading.then(() => {
          next = undefined;
          return start(asking);
        });
        return next;
      }
      return start(trigger);
    },
  };

  function start(trigger: ReloadTrigger): Promise<ReloadResult> {
    const now = read(trigger).finally(() => {
      if (reading === now) reading = undefined;
    });
    reading = now;
    return now;
  }
}

/** For a gateway that was given its configuration: there is nothing to read anew. */
export function createStaticReloader(now: () => number): Reloader {
  const status: ConfigStatus = { version: 1, loaded_at: new Date(now()).toISOString(), source: "built in" };
  const problems = ["Cannot read the configuration anew: this gateway was started without a way to"];
  return { status: () => status, reload: () => Promise.resolve({ outcome: "refused", problems }) };
}

function sourceOf({ path, variable, shared }: LoadedConfig): string {
  return shared !== undefined ? "store" : path ?? variable ?? "built in";
}

/** What makes two configurations the same: all they say, secrets included, without keeping these. SHA-256, hexadecimal. */
export function configDigest(config: Config): string {
  const text = JSON.stringify(config, function (this: Record<string, unknown>, name, value: unknown) {
    const given = this[name];
    return given instanceof Secret ? createHash("sha256").update(given.reveal()).digest("hex") : value;
  });
  return createHash("sha256").update(text).digest("hex");
}

/** Only mistakes of the file have words for the operator; anything else is named. */
function problemsOf(error: unknown): readonly string[] {
  if (error instanceof ConfigError) return error.problems;
  return [`Cannot use the configuration: ${messageOf(error)}`];
}
