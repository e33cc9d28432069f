/** Runs a gateway whose configuration can change while it serves, and starts the reloads. */
import { createLocalAdmin, hasLocalConsole } from "../access/sign_in_link.ts";
import type { LogEntry } from "../log_events.ts";
import { isOnDeploy } from "../config/deno_deploy.ts";
import { DEFAULT_FILE } from "../config/load.ts";
import { createReloader, type ReloadCause } from "../config/reloader.ts";
import { watchFile } from "../config/watch_file.ts";
import { createGateway, type Gateway, type GatewayParts, reconfigureGateway, retireGateway } from "../gateway.ts";
import type { Limiter } from "../limits/limiter.ts";
import { readGroupBudgets } from "../billing/budgets.ts";
import type { ChangeOrigin } from "../store/operators.ts";
import type { Store } from "../store/store.ts";
import { createReloadRequests, type ReloadableConfig } from "./loaded_config.ts";

/** Parts of a gateway that can be reconfigured. */
export interface LiveGatewayParts extends ReloadableConfig {
  store: Store;
  /** Absent: limits are counted in this process alone. */
  limiter?: Limiter;
  sharedResponses?: GatewayParts["sharedResponses"];
  /** Admin settings of a console that only sign-in links open; absent: no such console. */
  localAdmin?: GatewayParts["localAdmin"];
  /** Unix time in milliseconds. */
  now: () => number;
  log: (entry: LogEntry) => void;
}

/**
 * Reads what groups have spent, if the store is not shared. Such a store keeps these amounts in memory from then on.
 */
export async function readLocalBudgets(
  { store, config, now }: Pick<Gateway, "store" | "config"> & { now: number },
): Promise<void> {
  if (store.shared === undefined) await readGroupBudgets({ ledger: store.ledger, config, now });
}

/** Writes a reload to the log of changes. The modules for this are loaded only at the first reload. */
async function logReload(
  gateway: Gateway,
  { before, origin }: { before: Gateway["config"]; origin: ChangeOrigin },
): Promise<void> {
  const { logChange } = await import("../admin/changes.ts");
  const { configDifferences, differenceValues } = await import("../admin/config_differences.ts");
  const values = differenceValues(configDifferences(before, gateway.config));
  await logChange(gateway, { ...origin, action: "reload_configuration", ...values });
}

/**
 * Returns admin settings of a console that only sign-in links open; `undefined` if this process has no such console.
 */
export function localAdminOf(config: Gateway["config"]): Gateway["localAdmin"] {
  if (isOnDeploy((name) => Deno.env.get(name))) return undefined;
  return hasLocalConsole(config, Deno.stdout.isTerminal()) ? createLocalAdmin() : undefined;
}

/** Creates a gateway that every reload replaces. Returns a function that returns the current one. */
export function startLiveGateway(
  { loaded, load, latest, store, limiter, sharedResponses, localAdmin, now, log }: LiveGatewayParts,
): () => Gateway {
  const unchanged = () => gateway.health.renewKeys();
  const reloader = createReloader({ first: loaded, load, latest, now, log, apply, unchanged });
  let gateway = createGateway({
    config: loaded.config,
    store,
    limiter,
    sharedResponses,
    localAdmin,
    now,
    log,
    reloader,
  });
  async function apply(config: Gateway["config"], { trigger, origin }: ReloadCause): Promise<void> {
    await readLocalBudgets({ store, config, now: now() });
    const old = gateway;
    gateway = reconfigureGateway(old, config);
    void retireGateway(old);
    // A shared configuration was logged by the node that stored it.
    if (trigger === "store") return;
    void logReload(gateway, { before: old.config, origin: origin ?? { author: "configuration", at: now() } });
  }
  return () => gateway;
}

/**
 * Reloads the configuration on SIGHUP, and when the file or the store's configuration changes. Returns a function that
 * stops this. Deno Deploy has neither signals nor a file that changes.
 * @param file `path`: the file; absent: the default one. `since`: as for `watchFile`
 */
export function startReloading(
  { reloader, config, store }: Pick<Gateway, "reloader" | "config" | "store">,
  { path = DEFAULT_FILE, since }: { path?: string | undefined; since?: number } = {},
): () => void {
  const reloads = createReloadRequests(reloader);
  const ends = [reloads.end];
  const configs = config.nodes.config === "store" ? store.shared?.configs : undefined;
  if (configs !== undefined) {
    ends.push(configs.watch(() => reloads.request("store")));
    // Another node may have stored a configuration between the start and the watch.
    reloads.request("store");
  }
  if (!isOnDeploy((name) => Deno.env.get(name))) {
    const onSignal = () => reloads.request("signal");
    const hasSignal = Deno.build.os !== "windows";
    if (hasSignal) Deno.addSignalListener("SIGHUP", onSignal);
    const endWatch = watchFile({ path, since, changed: () => reloads.request("file") });
    ends.push(endWatch, () => hasSignal && Deno.removeSignalListener("SIGHUP", onSignal));
  }
  return () => {
    for (const end of ends.splice(0)) end();
  };
}
