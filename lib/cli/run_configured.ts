/** Runs the commands that need a valid configuration. */
import type { LoadedConfig } from "../config/load.ts";
import type { Route } from "../server/router.ts";
import type { Invocation } from "./arguments.ts";
import { testAlerts } from "./alerts.ts";
import { backup } from "./backup.ts";
import { check } from "./check.ts";
import type { CommandName } from "./commands.ts";
import { health } from "./health.ts";
import { keys } from "./keys.ts";
import { checkExporter } from "./otel_exporter.ts";
import { models } from "./models.ts";
import { prune } from "./prune.ts";
import { REPORTS } from "./reports.ts";
import { serve } from "./serve.ts";
import { translate } from "./translate.ts";

/** Commands that run without a configuration, or load it themselves. */
type OtherCommand = "help" | "version" | "fault" | "conform" | "doctor";

/** An invocation of a command that needs a valid configuration. */
export type ConfiguredInvocation = Invocation & { command: Exclude<CommandName, OtherCommand> };

/** Runs one command and returns its exit code. @throws {UsageError} @throws {ConfigError} @throws {StoreError} */
export async function runConfigured(
  invocation: ConfiguredInvocation,
  { config, path, variable, places }: LoadedConfig,
  routes: readonly Route[],
): Promise<number> {
  const { command } = invocation;
  switch (command) {
    case "serve":
      await checkExporter(config.private_networks);
      return await serve({ config, routes, flags: invocation.values, ...(path !== undefined && { path }) });
    case "check":
      return await check({
        config,
        ...(path !== undefined && { path }),
        ...(variable !== undefined && { variable }),
        ...(places !== undefined && { places }),
        json: invocation.switches.has("json"),
        strict: invocation.switches.has("strict"),
      });
    case "alerts test":
      return await testAlerts(config);
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
    case "keys export":
    case "keys import":
      return await keys(command, { ...invocation, config });
    case "audit":
    case "budgets":
    case "explain":
    case "requests":
    case "usage":
      return await REPORTS[command]({ ...invocation, config });
    case "models list":
    case "models show":
    case "models diff":
    case "models import":
      return await models(command, { ...invocation, config });
    case "prune":
      return await prune({ config });
    case "backup":
      return await backup({ config, ...invocation });
  }
}
