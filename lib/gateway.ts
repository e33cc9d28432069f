/** The composition root: a configuration becomes a `Gateway`, a record of everything a request needs. */
import { createKeyRing, type KeyRing } from "./access/keys.ts";
import { type Catalog, createCatalog } from "./catalog/catalog.ts";
import type { Config, UpstreamConfig } from "./config.ts";
import { createIdempotency, type Idempotency } from "./images/idempotency.ts";
import type { ImageUpstream } from "./images/types.ts";
import { createUploadGate, type UploadGate } from "./images/upload_gate.ts";
import { createMemoryLimiter } from "./limits/memory.ts";
import type { Limiter } from "./limits/limiter.ts";
import { type Afterwork, createAfterwork } from "./metering/afterwork.ts";
import { createLedger, type Ledger } from "./metering/ledger.ts";
import type { Store } from "./store/store.ts";
import { createCanvas } from "./upstreams/embedded/canvas.ts";
import { createEcho } from "./upstreams/embedded/echo.ts";
import { ISSUER } from "./upstreams/embedded/thinking.ts";
import { createHttpUpstream, modelIssuer } from "./upstreams/http_upstream.ts";
import { createOpenaiImages } from "./upstreams/openai_images.ts";
import { MENDS } from "./upstreams/mends/mod.ts";
import { createFetchTransport } from "./upstreams/transport.ts";
import type { Upstream } from "./upstreams/upstream.ts";
import { vendorOf } from "./upstreams/vendors.ts";

/** Everything a request needs. Immutable; a reload builds a new one. */
export interface Gateway {
  readonly config: Config;
  readonly catalog: Catalog;
  /** What outlives the process. */
  readonly store: Store;
  readonly keys: KeyRing;
  /** The way to what every request cost. */
  readonly ledger: Ledger;
  /** Limits of rate and concurrency. */
  readonly limiter: Limiter;
  /** What is still to be done for clients that have gone. */
  readonly afterwork: Afterwork;
  readonly upstreams: ReadonlyMap<string, Upstream>;
  /** Those that make pictures, by the same names. */
  readonly imageUpstreams: ReadonlyMap<string, ImageUpstream>;
  /** What uploads pass before they are read. */
  readonly uploads: UploadGate;
  /** Image requests that may come again. */
  readonly idempotency: Idempotency;
  /** Unix time in milliseconds. */
  readonly now: () => number;
  /** Milliseconds that only grow. */
  readonly monotonic: () => number;
  /** Numbers from 0 up to, not including, 1. */
  readonly random: () => number;
  readonly log: (entry: LogEntry) => void;
}

/** One line of the log: an event with its facts; never a key, a prompt or an answer. */
export interface LogEntry {
  level: "info" | "warn" | "error";
  event: string;
  [fact: string]: string | number | boolean | undefined;
}

/** What a gateway is made from. */
export interface Parts {
  config: Config;
  store: Store;
  /** Unix time in milliseconds. */
  now: () => number;
  /** Milliseconds that only grow; absent: since the process began. */
  monotonic?: () => number;
  /** Numbers from 0 up to, not including, 1; absent: `Math.random`. */
  random?: () => number;
  log: (entry: LogEntry) => void;
}

/** Uploads that may wait for others to be read, and for how long, in milliseconds. */
const WAITING_UPLOADS = 32;
const UPLOAD_WAIT_MS = 30_000;

/** Builds a gateway. Nothing is opened or read that was not handed in. */
export function createGateway(
  { config, store, now, monotonic = () => performance.now(), random = Math.random, log }: Parts,
): Gateway {
  const catalog = createCatalog(config);
  const issuers = issuersOf(catalog, config);
  return {
    config,
    catalog,
    store,
    keys: createKeyRing({ config, store: store.keys, now }),
    ledger: createLedger({ store: store.ledger, now, monotonic, log }),
    limiter: createMemoryLimiter({ monotonic }),
    afterwork: createAfterwork(),
    upstreams: new Map(
      Object.entries(config.upstreams).map(([name, row]) => [name, createUpstream(name, { row, issuers })]),
    ),
    imageUpstreams: new Map(
      Object.entries(config.upstreams).flatMap(([name, row]) => {
        const upstream = createImageUpstream(name, row);
        return upstream === undefined ? [] : [[name, upstream]];
      }),
    ),
    uploads: createUploadGate({
      concurrent: config.images.uploads.concurrent_uploads,
      waiting: WAITING_UPLOADS,
      waitMs: UPLOAD_WAIT_MS,
    }),
    idempotency: createIdempotency({
      store,
      now,
      report: (cause) => log({ level: "warn", event: "answer_not_kept", cause: nameOf(cause) }),
      windowMs: config.images.idempotency.window_seconds * 1000,
      maxBytes: config.images.idempotency.max_bytes,
      waitMs: config.images.total_ms,
    }),
    now,
    monotonic,
    random,
    log,
  };
}

/** Ends work that goes on without its clients, frees the connections to the upstreams, and enters what is to be entered. */
export async function closeGateway(
  { upstreams, imageUpstreams, idempotency, ledger, afterwork }: Gateway,
): Promise<void> {
  idempotency.close();
  for (const upstream of [...upstreams.values(), ...imageUpstreams.values()]) upstream.close();
  await afterwork.done();
  await ledger.close();
}

/** What the log may know of what was thrown. */
function nameOf(cause: unknown): string {
  return cause instanceof Error ? cause.name : typeof cause;
}

/** Issuers of the signatures that the catalog's models make. */
function issuersOf({ models }: Catalog, { upstreams }: Config): ReadonlySet<string> {
  const issuers = models.flatMap(({ targets }) =>
    targets.flatMap(({ upstream: name, model }) => {
      const row = upstreams[name];
      if (row === undefined) return [];
      if (row.vendor === "embedded") return [ISSUER];
      return [modelIssuer(model, { name, vendor: vendorOf(row.vendor), mend: MENDS[row.vendor] })];
    })
  );
  return new Set(issuers);
}

function createUpstream(
  name: string,
  { row, issuers }: { row: UpstreamConfig; issuers: ReadonlySet<string> },
): Upstream {
  if (row.vendor === "embedded") return createEcho();
  const vendor = vendorOf(row.vendor);
  const [first, ...others] = row.protocols ?? vendor.protocols;
  return createHttpUpstream({
    name,
    vendor,
    baseUrl: row.base_url ?? vendor.baseUrl ?? "",
    protocols: [first ?? vendor.protocols[0], ...others],
    key: row.api_key,
    mend: MENDS[row.vendor],
    issuers,
    limits: {
      firstByteMs: row.timeouts.first_byte_ms,
      idleMs: row.timeouts.idle_ms,
      totalMs: row.timeouts.total_ms,
    },
    transport: createFetchTransport(),
  });
}

/** Absent where the vendor makes no pictures. */
function createImageUpstream(name: string, row: UpstreamConfig): ImageUpstream | undefined {
  if (row.vendor === "embedded") return createCanvas();
  const vendor = vendorOf(row.vendor);
  if (vendor.images !== true) return undefined;
  return createOpenaiImages({
    name,
    vendor,
    baseUrl: row.base_url ?? vendor.baseUrl ?? "",
    key: row.api_key,
    limits: {
      firstByteMs: row.timeouts.first_byte_ms,
      idleMs: row.timeouts.idle_ms,
      totalMs: row.timeouts.images_total_ms,
    },
    transport: createFetchTransport({ idleConnections: 0 }),
  });
}
