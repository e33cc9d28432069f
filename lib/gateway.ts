/** The composition root: builds a `Gateway`, the record of all services that a request needs, from a configuration. */
import type { LogEntry } from "./log_events.ts";
import { createKeyRing, type KeyRing } from "./access/keys.ts";
import { type Catalog, createCatalog } from "./catalog/catalog.ts";
import type { Model, Target } from "./catalog/model.ts";
import type { AdminConfig, Config } from "./config.ts";
import { EndedSessions } from "./access/console_session.ts";
import { createStaticReloader, type Reloader } from "./config/reloader.ts";
import { describeFailure } from "./causes.ts";
import { GatewayError } from "./errors.ts";
import { Idempotency } from "./images/idempotency.ts";
import { createPixelQueue } from "./images/pixel_limits.ts";
import { type AdmissionQueue, createAdmissionQueue } from "./admission_queue.ts";
import { createMemoryLimiter } from "./limits/memory_limiter.ts";
import type { Limiter } from "./limits/limiter.ts";
import { BackgroundTasks, DrainedRequests, InFlightRequests } from "./billing/in_flight_requests.ts";
import { createLedger, type Ledger } from "./billing/ledger.ts";
import { Observer } from "./observe/observer.ts";
import { Recall, type SharedResponses } from "./recall/recall.ts";
import { ConversationTargets } from "./routing/affinity.ts";
import type { BreakerOptions, Health, HealthChange, HealthRow, UpstreamProbe } from "./routing/health.ts";
import { HealthTracker } from "./routing/health_tracker.ts";
import type { Store } from "./store/store.ts";
import { createAddressGuard } from "./upstreams/address_guard.ts";
import { closeUpstreams, createUpstreams, type Upstreams } from "./upstreams/create_upstreams.ts";
import { baseUrlOf } from "./upstreams/vendors.ts";
import { probeHost } from "./upstreams/probe.ts";
import { createReferenceCount, type ReferenceCount } from "./reference_count.ts";

/**
 * Everything a request needs. Immutable: a reload builds a new one, which shares the services that outlive a
 * configuration.
 */
export interface Gateway extends Upstreams {
  readonly config: Config;
  /** The active configuration, and its reload. */
  readonly reloader: Reloader;
  readonly catalog: Catalog;
  /** Store of keys, ledger and answers that are kept for repeated requests. */
  readonly store: Store;
  readonly keys: KeyRing;
  /** Ledger of the cost of every request. */
  readonly ledger: Ledger;
  readonly limiter: Limiter;
  /** Recent responses that requests may refer to. */
  readonly recall: Recall;
  readonly inFlight: InFlightRequests;
  /** Records requests in the log, in metrics and in traces. */
  readonly observer: Observer;
  /** Circuit breakers, statistics and retry budgets of targets. */
  readonly health: Health;
  /** Targets that answered recent conversations. */
  readonly conversations: ConversationTargets;
  /** Tasks that continue after their clients have disconnected. */
  readonly backgroundTasks: BackgroundTasks;
  /** Answers that are read to their end although their clients have disconnected. */
  readonly drains: DrainedRequests;
  /** Counts the requests that may still call upstreams of this configuration. */
  readonly uses: ReferenceCount;
  readonly uploads: AdmissionQueue;
  /** Queue in front of work on pixels in this process. */
  readonly pixels: AdmissionQueue;
  /** Answers of image requests with an idempotency key, for repeats. */
  readonly idempotency: Idempotency;
  /** Admin settings of a console that only sign-in links open; absent if there is no such console. */
  readonly localAdmin?: AdminConfig;
  /** Sessions of the console that were signed out. */
  readonly endedSessions: EndedSessions;
  /** Unix time in milliseconds. */
  readonly now: () => number;
  /** Time in milliseconds that never goes back. */
  readonly monotonic: () => number;
  /** Random numbers from 0 up to but not including 1. */
  readonly random: () => number;
  readonly log: (entry: LogEntry) => void;
}

/** Parts of a gateway. */
export interface GatewayParts {
  config: Config;
  store: Store;
  /** Unix time in milliseconds. */
  now: () => number;
  /** Time in milliseconds that never goes back; absent: `performance.now`. */
  monotonic?: () => number;
  /** Random numbers from 0 up to but not including 1; absent: `Math.random`. */
  random?: () => number;
  log: (entry: LogEntry) => void;
  /** Absent: the configuration stays as it is. */
  reloader?: Reloader;
  /** Absent: health is tracked in this process alone. */
  health?: Health;
  /** Absent: limits are counted in this process alone. */
  limiter?: Limiter;
  /** Absent: recent responses are kept in this process alone. */
  sharedResponses?: SharedResponses | undefined;
  /** Admin settings of a console that only sign-in links open; absent: no such console. */
  localAdmin?: AdminConfig | undefined;
}

/** The parts that depend on nothing but the configuration. */
type Configured = Pick<Gateway, "config" | "catalog" | "uses"> & Upstreams;

/** Largest number of uploads that wait until others are read. */
const MAX_WAITING_UPLOADS = 32;
/** Longest wait of an upload, in milliseconds. */
const UPLOAD_WAIT_MS = 30_000;

/** Builds a gateway from its parts. It opens no store, file or connection. */
export function createGateway(
  {
    config,
    store,
    now,
    monotonic = () => performance.now(),
    random = Math.random,
    log,
    reloader = createStaticReloader(now),
    health,
    limiter = createMemoryLimiter({ monotonic }),
    sharedResponses: shared,
    localAdmin,
  }: GatewayParts,
): Gateway {
  const built = buildConfigured(config, log);
  const observer = new Observer(monotonic, now);
  return {
    ...built,
    reloader,
    store,
    keys: createKeyRing({ config, store: store.keys, now }),
    ledger: createLedger({
      store: store.ledger,
      now,
      monotonic,
      leaseMs: config.nodes.lease_seconds * 1000,
      log: logWithPath(config, log),
    }),
    limiter,
    recall: new Recall({ limits: config.responses.recall, monotonic, shared }),
    inFlight: new InFlightRequests(),
    observer,
    health: health ?? ownHealth({ ...built, observer, now, monotonic, random, log }),
    conversations: new ConversationTargets(monotonic),
    backgroundTasks: new BackgroundTasks(),
    drains: new DrainedRequests(),
    uploads: createAdmissionQueue({
      concurrent: config.images.uploads.concurrent_uploads,
      waiting: MAX_WAITING_UPLOADS,
      waitMs: UPLOAD_WAIT_MS,
    }),
    pixels: createPixelQueue(config),
    idempotency: ownIdempotency({ config, store, now, log }),
    endedSessions: new EndedSessions(store.operators),
    ...(localAdmin !== undefined && { localAdmin }),
    now,
    monotonic,
    random,
    log,
  };
}

/**
 * Returns a gateway with another configuration that shares the store, ledger, limits, last uses of keys and running
 * requests of the old one. Requests that began in the old gateway finish there.
 */
export function reconfigureGateway(gateway: Gateway, config: Config): Gateway {
  const built = buildConfigured(config, gateway.log);
  gateway.recall.configure(config.responses.recall);
  gateway.health.reconfigure({ breaker: breakerOf(config), models: built.catalog.models, probe: probeOf(config) });
  return { ...gateway, ...built, keys: gateway.keys.renewed(config) };
}

/**
 * Returns a gateway with a single target and a single attempt, for a test by an operator. It neither reads nor changes
 * the target's health. `close` frees its own parts and leaves the shared ones open.
 */
export function isolateTarget(
  gateway: Gateway,
  model: Model,
  target: Target,
): { isolated: Gateway; close: () => void } {
  const { config, monotonic, now, random } = gateway;
  const targetOnly = { ...config, models: [{ ...model, targets: [target] }], embedded_models: false };
  const health = new HealthTracker({ breaker: breakerOf(config), monotonic, now, random });
  const isolated: Gateway = {
    ...gateway,
    config: { ...config, routing: { ...config.routing, attempts: 1 } },
    catalog: createCatalog(targetOnly),
    health,
    limiter: createMemoryLimiter({ monotonic }),
  };
  return { isolated, close: () => health.close() };
}

/** Closes the connections to the upstreams when the last request that began in this gateway is done. */
export async function retireGateway(gateway: Upstreams & Pick<Gateway, "uses">): Promise<void> {
  await gateway.uses.whenDone();
  closeUpstreams(gateway);
}

function ownHealth(
  { config, observer, log, ...clocks }: Pick<Gateway, "config" | "observer" | "now" | "monotonic" | "random" | "log">,
): Health {
  return new HealthTracker({
    breaker: breakerOf(config),
    probe: probeOf(config),
    ...clocks,
    changed(change) {
      const { upstream, model, scope } = change;
      const { state } = CHANGES[change.change];
      observer.counts.breakerChanged({ upstream, model: scope === "upstream" ? "" : model, state });
      log(describeChange(change));
    },
  });
}

function ownIdempotency({ config, store, now, log }: Pick<Gateway, "config" | "store" | "now" | "log">): Idempotency {
  return new Idempotency({
    store,
    now,
    isCharged: async (requestId) => ((await store.ledger.find(requestId))?.cost ?? 0n) > 0n,
    report: (cause) => log({ level: "warn", event: "answer_not_stored", ...describeFailure(cause) }),
    windowMs: config.images.idempotency.window_seconds * 1000,
    maxBytes: config.images.idempotency.max_bytes,
    waitMs: config.images.total_ms,
  });
}

function breakerOf({ routing: { breaker } }: Config): BreakerOptions {
  return {
    windowMs: breaker.window_ms,
    minSamples: breaker.least_requests,
    failureShare: breaker.failure_percent / 100,
    consecutiveFailures: breaker.consecutive_failures,
    connectFailures: breaker.connect_failures,
    openMs: breaker.open_ms,
  };
}

/** Longest duration of a probe, in milliseconds. */
const PROBE_TIMEOUT_MS = 5_000;

/** Returns the function that probes an upstream. The embedded upstream has no host to probe. */
function probeOf({ upstreams, private_networks }: Config): UpstreamProbe {
  const guard = createAddressGuard(private_networks);
  return (name, closing) => {
    const row = upstreams[name];
    if (row === undefined || row.vendor === "embedded") return undefined;
    const baseUrl = baseUrlOf(row);
    const signal = AbortSignal.any([closing, AbortSignal.timeout(PROBE_TIMEOUT_MS)]);
    return probeHost({ vendor: row.vendor, baseUrl, key: row.api_key, protocols: row.protocols, guard }, signal);
  };
}

/** Log line about each change of health, and the state of the circuit breaker after it. */
const CHANGES = {
  opened: { line: { level: "warn", event: "breaker_opened" }, state: "open" },
  half_open: { line: { level: "info", event: "breaker_half_open" }, state: "half_open" },
  closed: { line: { level: "info", event: "breaker_closed" }, state: "closed" },
  key_refused: { line: { level: "error", event: "upstream_key_refused" }, state: "quarantined" },
  key_accepted: { line: { level: "info", event: "upstream_key_accepted" }, state: "closed" },
} as const satisfies Record<HealthChange["change"], { line: LogEntry; state: HealthRow["state"] }>;

/**
 * Returns a log for the ledger that adds the path of the failed file. With a shared store, these events are caused by
 * its journal, because the journal takes the entries while the store fails.
 */
function logWithPath({ store, nodes: { journal } }: Config, log: Gateway["log"]): Gateway["log"] {
  if (store.kind === "sqlite") {
    return (entry) => log(entry.fault === undefined ? entry : { ...entry, path: store.path });
  }
  if (store.kind !== "postgres" || journal === null) return log;
  const isAboutJournal = ({ event, fault, cause }: LogEntry) =>
    (event === "ledger_failed" || event === "entry_not_written") && (fault !== undefined || cause === "no_room");
  return (entry) => log(isAboutJournal(entry) ? { ...entry, path: journal } : entry);
}

/** Returns the log line about a change of health. */
function describeChange({ change, upstream, model, scope, key, forMs, isRemoved }: HealthChange): LogEntry {
  return {
    ...CHANGES[change].line,
    upstream,
    model,
    scope,
    ...(key !== undefined && { key_id: key }),
    ...(forMs > 0 && { for_ms: Math.round(forMs) }),
    ...(isRemoved && { removed: true }),
  };
}

function buildConfigured(config: Config, log: Gateway["log"]): Configured {
  const catalog = createCatalog(config);
  return { config, catalog, ...createUpstreams({ config, catalog, log }), uses: createReferenceCount() };
}

/** Ends all running requests without a charge. Their clients get an error that says the gateway is shutting down. */
export function stopRequests({ inFlight, idempotency }: Pick<Gateway, "inFlight" | "idempotency">): Promise<void> {
  const stopped = inFlight.stop(shuttingDown());
  void idempotency.close();
  return stopped;
}

/** Ends the running text requests in the same way. */
export function stopTextRequests({ inFlight }: Pick<Gateway, "inFlight">): Promise<void> {
  return inFlight.stop(shuttingDown(), "text");
}

function shuttingDown(): GatewayError {
  return new GatewayError("overloaded", "The gateway is shutting down: try again");
}

/** Ends all requests, closes the connections to upstreams, and writes the last ledger entries. */
export async function closeGateway(gateway: Gateway): Promise<void> {
  const { ledger, limiter, backgroundTasks, health, recall, idempotency } = gateway;
  await stopRequests(gateway);
  await recall.close();
  health.close();
  closeUpstreams(gateway);
  await backgroundTasks.done();
  await idempotency.close();
  await ledger.close();
  await limiter.close();
}
