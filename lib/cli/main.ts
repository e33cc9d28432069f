/** The command line: reads it, loads the configuration, runs the command. */
import denoJson from "../../deno.json" with { type: "json" };
import { ConfigError } from "../config.ts";
import { loadConfig, type LoadedConfig, PLAIN_VARIABLES } from "../config/load.ts";
import type { Route } from "../server/router.ts";
import { StoreError } from "../store/store.ts";
import { type Invocation, parseArguments, UsageError } from "./arguments.ts";
import type { CommandName } from "./commands.ts";
import { helpText } from "./help.ts";
import { audit } from "./audit.ts";
import { backup } from "./backup.ts";
import { check } from "./check.ts";
import { conform } from "./conform.ts";
import { doctor } from "./doctor.ts";
import { explain } from "./explain.ts";
import { fault } from "./fault.ts";
import { health } from "./health.ts";
import { keys } from "./keys.ts";
import { writeErr, writeOut } from "./output.ts";
import { prune } from "./prune.ts";
import { serve } from "./serve.ts";
import { translate } from "./translate.ts";
import { usage } from "./usage.ts";

/**
 * Runs one command and returns the exit code: 0 done, 1 the command failed, 2 the command line was wrong. Problems go to
 * standard error, one line each; an internal error has its stack there.
 */
export async function main(args: readonly string[], routes: readonly Route[]): Promise<number> {
  try {
    return await run(parseArguments(args), routes);
  } catch (error) {
    if (error instanceof UsageError) {
      writeErr(`${error.message}; see "sluice help"\n`);
      return 2;
    }
    if (error instanceof ConfigError || error instanceof StoreError) {
      writeErr(`${error.message}\n`);
      return 1;
    }
    // The runtime's own report could show a password that a driver quotes.
    writeErr(`${Deno.inspect(error)}\n`);
    return 1;
  }
}

async function run(invocation: Invocation, routes: readonly Route[]): Promise<number> {
  const { command } = invocation;
  if (command === "help") return print(helpText(invocation.operand));
  if (command === "version") return print(`sluice ${denoJson.version}\n`);
  if (command === "fault") return await fault(invocation);
  // Tests another gateway, so the configuration is not needed.
  if (command === "conform") return await conform(invocation, (name) => Deno.env.get(name));
  // The doctor reports a broken configuration as a finding.
  if (command === "doctor") {
    return await doctor(invocation, { load: () => load(invocation), env: (name) => Deno.env.get(name) });
  }
  const { config, path, variable } = await load(invocation);
  switch (command) {
    case "serve":
      return await serve({ config, routes, flags: invocation.values, ...(path !== undefined && { path }) });
    case "check":
      return check({
        config,
        ...(path !== undefined && { path }),
        ...(variable !== undefined && { variable }),
        json: invocation.switches.has("json"),
      });
    case "translate":
      return await translate({
        config,
        from: invocation.values.from ?? "",
        to: invocation.values.to ?? "",
        ...(invocation.values.vendor !== undefined && { vendor: invocation.values.vendor }),
        bytes: new Uint8Array(await new Response(Deno.stdin.readable).arrayBuffer()),
      });
    case "health":
      return await health(config);
    case "keys add":
    case "keys list":
    case "keys show":
    case "keys change":
    case "keys disable":
    case "keys enable":
    case "keys revoke":
    case "keys rotate":
      return await keys(command, { ...invocation, config });
    case "usage":
      return await usage({ config, ...invocation });
    case "explain":
      return await explain({ config, ...invocation });
    case "audit":
      return await audit({ config, ...invocation });
    case "prune":
      return await prune({ config });
    case "backup":
      return await backup({ config, ...invocation });
  }
}

function load({ command, values }: Invocation): Promise<LoadedConfig> {
  return loadConfig({
    flags: values,
    env: USE_SECRETS.has(command) ? (name) => Deno.env.get(name) : envWithout,
    readTextFile: (path) => Deno.readTextFile(path),
  });
}

/** Commands that need the secrets of the configuration. All others work without them. */
const USE_SECRETS: ReadonlySet<CommandName> = new Set(["serve", "check", "doctor"]);

/** The environment, with a placeholder for each secret that is not set. */
function envWithout(name: string): string | undefined {
  const value = Deno.env.get(name);
  if (value !== undefined && value !== "") return value;
  if (PLAIN_VARIABLES.has(name)) return value;
  return /^SLUICE_(CONFIG|HOSTNAME|PORT|ADMIN_PORT|STORE|LIMITS_STORE)$/.test(name) ? value : `no-secret-in-${name}`;
}

function print(text: string): number {
  writeOut(text);
  return 0;
}
