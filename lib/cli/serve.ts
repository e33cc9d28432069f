/** `serve`: runs the gateway. Opens the stores and listeners, prints how to connect, and shuts down on a signal. */
import type { Config } from "../config.ts";
import type { ConfigFlags } from "../config/load.ts";
import { closeGateway, type Gateway, stopRequests, stopTextRequests } from "../gateway.ts";
import { createDrain, type Drain } from "../server/drain.ts";
import type { Route } from "../server/router.ts";
import { listenAll, ListenError, type Server, shutdownAll } from "./listen.ts";
import { loadRemainingModules } from "./load_modules.ts";
import { localAdminOf, readLocalBudgets, startLiveGateway, startReloading } from "./live_gateway.ts";
import { openLoadedConfig } from "./loaded_config.ts";
import { flushKeys, startMaintenance } from "./maintenance.ts";
import { openStores } from "./open_stores.ts";
import { writeErr, writeOut } from "./output.ts";
import { openServeLog } from "./serve_log.ts";
import { listenForStopSignals, type ShutdownOutcome, shutDownServer, type StopSignals } from "./shutdown.ts";
import { welcomeText } from "./welcome.ts";

/** Time to close the store after a second signal, in milliseconds. The store is not harmed if that takes longer. */
const CLOSE_MS = 200;

const never = new Promise<never>(() => {});

/** Options of `serve`. */
export interface ServeOptions {
  config: Config;
  /** Path of the configuration file; absent: there is none. */
  path?: string;
  routes: readonly Route[];
  /** Flags of the command line. Reloads use them, and so does the printed command that adds a key. */
  flags: ConfigFlags;
}

/** Serves until a signal stops it. Returns the exit code. @throws {StoreError} if the store cannot be opened */
export async function serve({ config, path, routes, flags }: ServeOptions): Promise<number> {
  // Without a listener, a reload requested during the start or the shutdown would kill the process.
  if (Deno.build.os !== "windows") Deno.addSignalListener("SIGHUP", () => {});
  let level = () => config.log.level;
  const { log, lines, alerts, stopErrorLog } = openServeLog(() => level());
  const stores = await openStores(config, log);
  const { store } = stores;
  const loaded = { config, path };
  const origin = await openLoadedConfig({ loaded, flags, store, log });
  const current = startLiveGateway({ ...origin, ...stores, localAdmin: localAdminOf(config), now: Date.now, log });
  level = () => current().config.log.level;
  current().observer.setLostLines(() => lines.lost);
  const drain = createDrain();
  const endMaintenance = startMaintenance(current, log);
  let signals: StopSignals | undefined;
  let code = 0;
  // A failure is ignored here: it is reported by the requests that need the module.
  const loading = new AbortController();
  void loadRemainingModules(routes, loading.signal).catch(() => {});
  try {
    await readLocalBudgets({ store, config, now: Date.now() });
    const servers = await listenAll(current, { routes, drain });
    signals = listenForStopSignals();
    const { first, second } = signals;
    const endReloading = startReloading(current(), { path, since: performance.timeOrigin });
    alerts.start(current);
    try {
      writeOut(await welcomeText({ gateway: current(), servers, flags }));
      await first;
      endReloading();
      const outcome = await end(current(), { servers, drain, second });
      if (outcome === "cut") code = 1;
    } finally {
      endReloading();
    }
  } catch (error) {
    if (!(error instanceof ListenError)) throw error;
    writeErr(`${error.message}\n`);
    code = 1;
  } finally {
    loading.abort();
    stopErrorLog();
    endMaintenance();
    // The signal listeners stay: without them, a repetition of the first signal would kill the process while it writes.
    const closeLimit = signals?.second.then(() => new Promise<void>((resolve) => setTimeout(resolve, CLOSE_MS)));
    const isClosed = await Promise.race([
      alerts.end().then(() => close(current())).then(() => true),
      closeLimit?.then(() => false) ?? never,
    ]);
    if (!isClosed) code = 1;
    await lines.flush();
  }
  return code;
}

interface ShutdownContext {
  servers: readonly Server[];
  drain: Drain;
  second: Promise<void>;
}

function end(gateway: Gateway, { servers, drain, second }: ShutdownContext): Promise<ShutdownOutcome> {
  const { ready_delay_ms, drain_seconds, images_drain_seconds } = gateway.config.shutdown;
  return shutDownServer({
    server: { shutdown: () => shutdownAll(servers) },
    drain,
    inFlight: gateway.inFlight,
    stopTexts: () => stopTextRequests(gateway),
    stopAll: () => stopRequests(gateway),
    second,
    times: { readyDelayMs: ready_delay_ms, drainMs: drain_seconds * 1000, imagesDrainMs: images_drain_seconds * 1000 },
    log: gateway.log,
  });
}

async function close(gateway: Gateway): Promise<void> {
  await flushKeys(gateway);
  await closeGateway(gateway);
  await gateway.store.close();
}
