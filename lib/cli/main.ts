/** The entry point of the command line: parses it, loads the configuration, and runs the command. */
import denoJson from "../../deno.json" with { type: "json" };
import { ConfigError } from "../config.ts";
import {
  type ConfigInputs,
  loadConfig,
  type LoadedConfig,
  loadMembers,
  PLAIN_VARIABLES,
  type ReadableMember,
} from "../config/load.ts";
import { messageOf } from "../errors.ts";
import { StoreError } from "../store/store.ts";
import { type Invocation, parseArguments, UsageError } from "./arguments.ts";
import type { CommandName } from "./commands.ts";
import { helpText } from "./help.ts";
import { outputFailure, writeErr, writeOut } from "./output.ts";
import { type LoadRoutes, runConfigured } from "./run_configured.ts";

/**
 * Runs a command and returns its exit code: 0 for success, 1 if the command failed, 2 if the command line was wrong.
 * Only the modules of that command are loaded. Problems go to standard error, one line each; an internal error with its
 * stack.
 */
export async function main(args: readonly string[], loadRoutes: LoadRoutes): Promise<number> {
  try {
    return exitCode(await run(parseArguments(args), loadRoutes));
  } catch (error) {
    if (error instanceof UsageError) {
      writeErr(`${error.message}; see "sluice help"\n`);
      return 2;
    }
    if (error instanceof ConfigError || error instanceof StoreError) {
      writeErr(`${error.message}\n`);
      return 1;
    }
    // The runtime's own report could show a password that a driver quotes; `writeErr` removes it.
    writeErr(`${Deno.inspect(error)}\n`);
    return 1;
  }
}

/** Returns the exit code of a command; 1 if its result could not be written, unless the reader closed the pipe. */
function exitCode(code: number): number {
  const failure = outputFailure();
  if (failure === undefined || failure instanceof Deno.errors.BrokenPipe) return code;
  writeErr(`Cannot write the result: ${messageOf(failure)}\n`);
  return code === 0 ? 1 : code;
}

/** Runs a command that works without a valid configuration, or leaves the others to `runConfigured`. */
async function run(invocation: Invocation, loadRoutes: LoadRoutes): Promise<number> {
  const { command } = invocation;
  if (command === "help") return print(helpText(invocation.operand));
  if (command === "version") return print(`sluice ${denoJson.version}\n`);
  if (command === "fault") return await (await import("./fault.ts")).fault(invocation);
  // `conform` tests any gateway, so it needs no configuration.
  if (command === "conform") {
    return await (await import("./conform.ts")).conform(invocation, (name) => Deno.env.get(name));
  }
  if (command === "init") {
    const { askAtTerminal, init } = await import("./init.ts");
    const ask = Deno.stdin.isTerminal() ? { ask: askAtTerminal } : {};
    return await init(invocation, { ...ask, env: (name) => Deno.env.get(name), now: Date.now });
  }
  // `doctor` loads the configuration itself, to report a broken one as a finding.
  if (command === "doctor") {
    const { doctor } = await import("./doctor.ts");
    return await doctor(invocation, { load: () => load(invocation), env: (name) => Deno.env.get(name) });
  }
  return await runConfigured({ ...invocation, command }, await load(invocation), loadRoutes);
}

/**
 * Loads the configuration. If it has mistakes, a command that needs only some members of it gets those, and the
 * mistakes go to standard error.
 */
async function load({ command, values }: Invocation): Promise<LoadedConfig> {
  const sources: ConfigInputs = {
    flags: values,
    env: SECRET_COMMANDS.has(command) ? (name) => Deno.env.get(name) : envWithPlaceholders,
    readTextFile: (path) => Deno.readTextFile(path),
  };
  try {
    return await loadConfig(sources);
  } catch (error) {
    // The report on upstreams needs the prices of all models.
    const members = values.by === "upstream" ? undefined : MEMBER_COMMANDS.get(command);
    if (!(error instanceof ConfigError) || members === undefined) throw error;
    const loaded = await loadMembers(members, sources).catch((cause) => {
      if (!(cause instanceof ConfigError)) throw cause;
      throw new ConfigError([...error.problems, ...(members.length === 1 ? [STORE_ADVICE] : [])]);
    });
    writeErr(`${error.message}\nThe configuration has mistakes; this command uses ${usedText(loaded.members ?? [])}\n`);
    return loaded;
  }
}

function usedText(members: readonly ReadableMember[]): string {
  if (members.length === 0) return "only flags, environment variables and defaults";
  return `only ${members.length === 1 ? "member" : "members"} ${members.map((member) => `"${member}"`).join(", ")}`;
}

/**
 * Commands that need only some members of the configuration. They work although others have mistakes: a running gateway
 * keeps its configuration then, a health check must not end it, and its operator may have to disable a key.
 */
const MEMBER_COMMANDS: ReadonlyMap<CommandName, readonly ReadableMember[]> = new Map([
  ...needing(["store"], ["keys disable", "keys enable", "keys revoke", "keys rotate", "keys export"]),
  ...needing(["store"], ["audit", "backup", "explain", "requests", "usage"]),
  ...needing(["store", "groups", "keys"], ["keys add", "keys change", "keys list", "keys show", "budgets"]),
  ...needing(["listen"], ["health"]),
]);

function needing(
  members: readonly ReadableMember[],
  commands: readonly CommandName[],
): (readonly [CommandName, readonly ReadableMember[]])[] {
  return commands.map((command) => [command, members]);
}

/** The last line about a configuration that does not name the store. */
const STORE_ADVICE = "To use this command before the configuration is correct, name the store with --store";

/** Commands that need the secrets of the configuration. All others work without them. */
const SECRET_COMMANDS: ReadonlySet<CommandName> = new Set(["serve", "check", "doctor", "alerts test"]);

/**
 * Reads the environment, with a placeholder for each secret that is not set. The placeholder is an address, because the
 * secret may have to be one.
 */
function envWithPlaceholders(name: string): string | undefined {
  const value = Deno.env.get(name);
  if (value !== undefined && value !== "") return value;
  if (PLAIN_VARIABLES.has(name)) return value;
  return /^SLUICE_(CONFIG|HOSTNAME|PORT|ADMIN_PORT|STORE|LIMITS_STORE)$/.test(name)
    ? value
    : `https://no-secret-in-${name}`;
}

function print(text: string): number {
  writeOut(text);
  return 0;
}
