/** `serve`: opens the store, listens, prints how to connect, and shuts down in good order. */
import { issueKey } from "../access/keys.ts";
import { isWithin } from "../access/networks.ts";
import { mayUse } from "../access/permissions.ts";
import { isExpired, isLanguageModel } from "../catalog/catalog.ts";
import type { Model } from "../catalog/model.ts";
import { type Config, ConfigError, groupOf } from "../config.ts";
import { isOnDeploy } from "../config/deno_deploy.ts";
import type { ConfigFlags } from "../config/load.ts";
import { closeGateway, type Gateway, stopRequests, stopTextRequests } from "../gateway.ts";
import type { AppOptions } from "../server/app.ts";
import { createSenders } from "../server/door.ts";
import { createDrain, type Drain } from "../server/drain.ts";
import { describeCause } from "../server/cause.ts";
import type { Route } from "../server/router.ts";
import { listenersOf } from "../server/surface.ts";
import { type LimiterOptions, openLimiter } from "../limits/open_limiter.ts";
import { readGroupBudgets } from "../billing/group_budgets.ts";
import { lostEntry } from "../store/sqlite/accounts.ts";
import { openStore } from "../store/open.ts";
import type { SharedStoreOptions, Store } from "../store/store.ts";
import { allowedAddresses, BlockedAddress, metadataGuard } from "../upstreams/address_guard.ts";
import {
  addCommand,
  DEPLOYED_ORIGIN,
  firstStartText,
  laterStartText,
  MEMORY_KEYS,
  MOST_KEYS_TOLD,
  originOf,
} from "./banner.ts";
import { logUncaughtErrors } from "./uncaught_errors.ts";
import { listen, ListenError, type Server } from "./listen.ts";
import { createLog, createLogWriter } from "./log.ts";
import { startMemoryRelease } from "./release_memory.ts";
import { writeErr, writeOut } from "./output.ts";
import { startPruning } from "./prune_schedule.ts";
import { openLoadedConfig } from "./loaded_config.ts";
import { startLiveGateway, startReloading } from "./live_gateway.ts";
import { listenForStopSignals, type ShutdownOutcome, shutDownServer, type StopSignals } from "./shutdown.ts";

/** Interval of periodic maintenance, in milliseconds. */
const SWEEP_MS = 60_000;

/** Longest time for closing the store after a second signal, in milliseconds: it survives without. */
const CUT_MS = 200;

const never = new Promise<never>(() => {});

/** Options of `serve`. */
export interface ServeOptions {
  config: Config;
  /** The configuration's file; absent: there is none. */
  path?: string;
  routes: readonly Route[];
  /** Flags of the command line: reloads use them, and the command that adds a key needs the same. */
  flags: ConfigFlags;
}

/** Serves until a signal stops it. Returns the exit code. @throws {StoreError} where the store cannot be opened */
export async function serve({ config, path, routes, flags }: ServeOptions): Promise<number> {
  await checkExporter(config.private_networks);
  const lines = createLogWriter(Deno.stderr);
  let level = () => config.log.level;
  const log = createLog({ write: lines.write, now: Date.now, level: () => level() });
  const store = await openStore(config.store, {
    own: true,
    shared: sharedStoreOptions(config, log),
    migrated: (facts) => log({ level: "info", event: "store_migrated", ...facts }),
  });
  const limiter = await openLimiter(config.limits_store, limiterOptions(config, { store, log }));
  const loaded = { config, ...(path !== undefined && { path }) };
  const origin = await openLoadedConfig({ loaded, flags, store, log });
  const forget = logUncaughtErrors(log);
  const current = startLiveGateway({ ...origin, store, limiter, now: Date.now, log });
  level = () => current().config.log.level;
  current().observer.losesLines(() => lines.lost);
  const endLoopWatch = current().observer.loop.start();
  const drain = createDrain();
  const sweeping = setInterval(() => void sweep(current()), SWEEP_MS);
  const endPruning = startPruning(current);
  const endRelease = startMemoryRelease({ running: () => current().observer.open.requests, log });
  let signals: StopSignals | undefined;
  let code = 0;
  try {
    if (config.store.kind === "sqlite") await readGroupBudgets({ ledger: store.ledger, config, now: Date.now() });
    const senders = createSenders({ monotonic: () => performance.now() });
    const servers = await listenAll(current, { routes, drain, senders });
    signals = listenForStopSignals();
    const { first, second } = signals;
    const endReloading = startReloading(current(), path);
    try {
      await welcome({ gateway: current(), store, ...originsOf(config, servers), flags });
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
    forget();
    clearInterval(sweeping);
    endPruning();
    endRelease();
    endLoopWatch();
    // The signal listeners stay: a repetition of the first signal would otherwise kill the process while it writes.
    const cut = signals?.second.then(() => new Promise<void>((resolve) => setTimeout(resolve, CUT_MS)));
    const isClosed = await Promise.race([close(current()).then(() => true), cut?.then(() => false) ?? never]);
    if (!isClosed) code = 1;
    await lines.flush();
  }
  return code;
}

/** Deno's own exporter accepts no address guard, so its address is checked once. @throws {ConfigError} */
async function checkExporter(privateNetworks: Config["private_networks"]): Promise<void> {
  const address = URL.parse(Deno.env.get("OTEL_EXPORTER_OTLP_ENDPOINT") ?? "");
  if (address === null || (Deno.env.get("OTEL_DENO") ?? "") === "") return;
  try {
    await allowedAddresses(address.hostname.replace(/^\[(.*)\]$/, "$1"), {
      guard(hostname, at) {
        if (!isWithin(at, privateNetworks ?? [])) metadataGuard(hostname, at);
      },
    });
  } catch (error) {
    // A collector that is not running yet is no error.
    if (error instanceof BlockedAddress) throw new ConfigError([`OTEL_EXPORTER_OTLP_ENDPOINT: ${error.message}`]);
  }
}

/** Options for a store that nodes share. */
function sharedStoreOptions({ nodes }: Config, log: Gateway["log"]): SharedStoreOptions {
  return {
    keyAgeMs: nodes.key_age_seconds * 1000,
    ...(nodes.journal !== null && { journal: nodes.journal }),
    journalEntries: nodes.journal_entries,
    leaseMs: nodes.lease_seconds * 1000,
    log,
  };
}

function limiterOptions({ nodes }: Config, { store, log }: Pick<Gateway, "store" | "log">): LimiterOptions {
  const { shared } = store;
  return {
    monotonic: () => performance.now(),
    outage: nodes.limits_outage,
    timeoutMs: nodes.limits_timeout_ms,
    leaseMs: nodes.lease_seconds * 1000,
    ...(shared !== undefined && {
      storeHeardMs: () => shared.heardMs?.(),
      enterLost: (requests) => store.ledger.append(requests.map((request) => lostEntry(request, Date.now()))),
    }),
    log,
  };
}

interface Ending {
  servers: readonly Server[];
  drain: Drain;
  second: Promise<void>;
}

function end(gateway: Gateway, { servers, drain, second }: Ending): Promise<ShutdownOutcome> {
  const { ready_delay_ms, drain_seconds, images_drain_seconds } = gateway.config.shutdown;
  return shutDownServer({
    server: all(servers),
    drain,
    running: gateway.running,
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

/**
 * Runs periodic maintenance: removes kept answers after their window and holds of nodes that have ended, and stores when
 * keys were last used.
 */
async function sweep(gateway: Gateway): Promise<void> {
  const { idempotency, ledger, log } = gateway;
  await flushKeys(gateway);
  await ledger.sweep();
  try {
    await idempotency.sweep();
  } catch (error) {
    log({ level: "warn", event: "sweep_failed", ...describeCause(error) });
  }
}

async function flushKeys({ keys, log }: Gateway): Promise<void> {
  try {
    await keys.flush();
  } catch (error) {
    log({ level: "warn", event: "key_use_not_kept", ...describeCause(error) });
  }
}

/** Opens every listener, or none of them: that of the clients first. @throws {ListenError} */
async function listenAll(
  current: () => Gateway,
  parts: Pick<AppOptions, "routes" | "drain" | "senders">,
): Promise<[Server, ...Server[]]> {
  const [clients, ...others] = listenersOf(current().config);
  const servers: [Server, ...Server[]] = [listen(current, { ...parts, listener: clients })];
  try {
    for (const listener of others) servers.push(listen(current, { ...parts, listener }));
    return servers;
  } catch (error) {
    await all(servers).shutdown();
    throw error;
  }
}

/** Servers that end together. */
function all(servers: readonly Server[]): { shutdown(): Promise<void> } {
  return {
    async shutdown() {
      await Promise.all(servers.map((server) => server.shutdown()));
    },
  };
}

/** URLs for clients and for the operator. */
function originsOf(
  { admin }: Pick<Config, "admin">,
  [clients, operator = clients]: readonly [Server, ...Server[]],
): { origin: string; admin?: string } {
  const originAt = ({ addr }: Server): string => isDeployed() ? DEPLOYED_ORIGIN : originOf(addr);
  const origin = originAt(clients);
  return admin === undefined ? { origin } : { origin, admin: originAt(operator) };
}

interface Welcome {
  gateway: Gateway;
  store: Store;
  origin: string;
  /** URL of the admin side; absent: there is none. */
  admin?: string;
  flags: ServeOptions["flags"];
}

/**
 * Prints how to connect. Creates the first key if there is none and the output is a terminal, as a log would keep the key;
 * only after the port is open, as a start that fails must not use up the one time that the key is shown.
 */
async function welcome({ gateway, store, flags, ...origins }: Welcome): Promise<void> {
  const configured = gateway.config.keys.map(({ name }) => name);
  const isFirst = configured.length === 0 && (await store.keys.summary(0)).total === 0;
  if (isFirst && Deno.stdout.isTerminal()) {
    const { key, record } = issueKey({ name: "default", group: "default", now: gateway.now() });
    // False where another process was faster: its key is then listed below.
    if (await store.keys.add(record)) {
      const model = gateway.catalog.models.find((model) => isUsable(gateway, model));
      writeOut(firstStartText({ ...origins, key, ...(model !== undefined && { model: model.id }) }));
      return;
    }
  }
  const program = { isStandalone: Deno.build.standalone, isDeployed: isDeployed() };
  const command = gateway.config.store.kind === "memory" ? MEMORY_KEYS : addCommand(flags, program);
  writeOut(
    laterStartText({ ...origins, keys: await store.keys.summary(MOST_KEYS_TOLD), configured, addCommand: command }),
  );
}

function isDeployed(): boolean {
  return isOnDeploy((name) => Deno.env.get(name));
}

/** True for a model that a key of the default group can be tried with. */
function isUsable({ config, now }: Gateway, model: Model): boolean {
  const group = groupOf(config, "default");
  return group !== undefined && isLanguageModel(model) && !isExpired(model, now()) &&
    mayUse({ group, rules: {} }, model.id);
}
