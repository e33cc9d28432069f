/** Runs the commands that need a valid configuration. */
import type { LoadedConfig } from "../config/load.ts";
import type { Route } from "../server/router.ts";
import type { Invocation } from "./arguments.ts";
import type { CommandName } from "./commands.ts";

/** Commands that run without a configuration, or load it themselves. */
type OtherCommand = "help" | "version" | "init" | "fault" | "conform" | "doctor";

/** An invocation of a command that needs a valid configuration. */
export type ConfiguredInvocation = Invocation & { command: Exclude<CommandName, OtherCommand> };

/** Imports the routes that the gateway serves. */
export type LoadRoutes = () => Promise<{ routes: readonly Route[] }>;

/**
 * Runs a command and returns its exit code.
 * @throws {UsageError} if the command line is wrong
 * @throws {ConfigError} if the command finds a mistake in the configuration
 * @throws {StoreError} if the store cannot be used
 */
export async function runConfigured(
  invocation: ConfiguredInvocation,
  loaded: LoadedConfig,
  loadRoutes: LoadRoutes,
): Promise<number> {
  const { command } = invocation;
  const { config, path } = loaded;
  switch (command) {
    case "serve": {
      const [{ serve }, { checkExporter }, { routes }] = await Promise.all([
        import("./serve.ts"),
        import("./otel_exporter.ts"),
        loadRoutes(),
      ]);
      await checkExporter(config.private_networks);
      return await serve({ config, routes, flags: invocation.values, path });
    }
    case "check":
      return await (await import("./check.ts")).check({
        ...loaded,
        json: invocation.switches.has("json"),
        strict: invocation.switches.has("strict"),
      });
    case "alerts test":
      return await (await import("./alerts.ts")).testAlerts(config);
    case "translate":
      return await (await import("./translate.ts")).translate({
        config,
        from: invocation.values.from ?? "",
        to: invocation.values.to ?? "",
        vendor: invocation.values.vendor,
        readInput: async () => new Uint8Array(await new Response(Deno.stdin.readable).arrayBuffer()),
      });
    case "console":
      return await (await import("./console.ts")).printSignInLink({ config });
    case "health":
      return await (await import("./health.ts")).health(config);
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
      return await (await import("./keys.ts")).keys(command, { ...invocation, loaded });
    case "audit":
      return await (await import("./audit.ts")).audit({ ...invocation, config });
    case "budgets":
      return await (await import("./budgets.ts")).budgets({ ...invocation, config });
    case "explain":
      return await (await import("./explain.ts")).explain({ ...invocation, config });
    case "requests":
      return await (await import("./requests.ts")).requests({ ...invocation, config });
    case "usage":
      return await (await import("./usage.ts")).usage({ ...invocation, config });
    case "models list":
    case "models show":
    case "models diff":
    case "models import":
      return await (await import("./models.ts")).models(command, { ...invocation, config });
    case "prune":
      return await (await import("./prune.ts")).prune({ config });
    case "backup":
      return await (await import("./backup.ts")).backup({ config, ...invocation });
  }
}
