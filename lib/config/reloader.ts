/** How a configuration takes the place of another while the gateway serves, and what is told of that. */
import { createHash } from "node:crypto";
import { type Config, ConfigError } from "../config.ts";
import { Secret } from "../secret.ts";
import type { LoadedConfig } from "./load.ts";
import { keepFixed } from "./fixed.ts";

/** Most mistakes of one file that are told, each on a line of its own. */
const MOST_PROBLEMS = 50;

/** What asks for a reload. */
export type ReloadTrigger = "signal" | "file" | "admin";

/** Which configuration is in force. */
export interface ConfigStatus {
  /** 1 at the start; grows with every configuration that takes the place of another. */
  version: number;
  /** When it came into force, ISO 8601. */
  loaded_at: string;
  /** Path of its file, or name of the variable that holds its text; `built in` where there is neither. */
  source: string;
  /** Why the latest one was refused; absent where it was not. */
  last_error?: { at: string; problems: string[] };
}

/** What became of a reload. */
export type Reloaded =
  | { outcome: "changed" | "unchanged"; /** Changes that need a new start. */ ignored: string[] }
  | { outcome: "refused"; problems: string[] };

/** Reads the configuration anew. */
export interface Reloader {
  status(): ConfigStatus;
  /** Reads the configuration as it is now or later. One reading at a time. Never rejects. */
  reload(trigger: ReloadTrigger): Promise<Reloaded>;
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
  /** Reads and checks the configuration. @throws {ConfigError} */
  load: () => Promise<LoadedConfig>;
  /** Builds what serves by it, and puts that in place, or throws and changes nothing. */
  apply: (config: Config) => void;
  /** Unix time in milliseconds. */
  now: () => number;
  log: (line: Line) => void;
}

/** Makes a reloader. What cannot be used is refused and told; what was in force goes on. */
export function createReloader({ first, load, apply, now, log }: ReloaderParts): Reloader {
  let status: ConfigStatus = { version: 1, loaded_at: time(), source: sourceOf(first) };
  let inForce = digestOf(first.config);
  let reading: Promise<Reloaded> | undefined;
  let next: Promise<Reloaded> | undefined;

  function time(): string {
    return new Date(now()).toISOString();
  }

  async function read(trigger: ReloadTrigger): Promise<Reloaded> {
    try {
      const loaded = await load();
      const { config, ignored } = keepFixed(first.config, loaded.config);
      const digest = digestOf(config);
      const { last_error: _, ...rest } = status;
      status = rest;
      if (digest === inForce) {
        warn(ignored);
        if (trigger !== "file") log({ level: "info", event: "reload_unchanged", trigger, version: status.version });
        return { outcome: "unchanged", ignored };
      }
      apply(config);
      inForce = digest;
      status = { version: status.version + 1, loaded_at: time(), source: sourceOf(loaded) };
      log({ level: "info", event: "reloaded", trigger, version: status.version, source: status.source });
      warn(ignored);
      return { outcome: "changed", ignored };
    } catch (error) {
      return refuse(problemsOf(error), trigger);
    }
  }

  function refuse(all: readonly string[], trigger: ReloadTrigger): Reloaded {
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
    status: () => status,
    reload(trigger) {
      if (next !== undefined) return next;
      if (reading !== undefined) {
        // What is being read may be older than what this one asks for.
        next = reading.then(() => {
          next = undefined;
          return start(trigger);
        });
        return next;
      }
      return start(trigger);
    },
  };

  function start(trigger: ReloadTrigger): Promise<Reloaded> {
    const now = read(trigger).finally(() => {
      if (reading === now) reading = undefined;
    });
    reading = now;
    return now;
  }
}

/** For a gateway that was given its configuration: there is nothing to read anew. */
export function noReloader(now: () => number): Reloader {
  const status: ConfigStatus = { version: 1, loaded_at: new Date(now()).toISOString(), source: "built in" };
  const problems = ["Cannot read the configuration anew: this gateway was started without a way to"];
  return { status: () => status, reload: () => Promise.resolve({ outcome: "refused", problems }) };
}

function sourceOf({ path, variable }: LoadedConfig): string {
  return path ?? variable ?? "built in";
}

/** What makes two configurations the same: all they say, secrets included, without keeping these. */
function digestOf(config: Config): string {
  const text = JSON.stringify(config, function (this: Record<string, unknown>, name, value: unknown) {
    const given = this[name];
    return given instanceof Secret ? createHash("sha256").update(given.reveal()).digest("hex") : value;
  });
  return createHash("sha256").update(text).digest("hex");
}

/** Only mistakes of the file have words for the operator; anything else is named. */
function problemsOf(error: unknown): readonly string[] {
  if (error instanceof ConfigError) return error.problems;
  return [`Cannot use the configuration: ${error instanceof Error ? error.message : String(error)}`];
}
