/** Creates the upstreams of a configuration: for text, images, embeddings and reranking. */
import { type Catalog, kindOf } from "../catalog/catalog.ts";
import type { Config, HttpUpstreamConfig } from "../config.ts";
import type { ImageUpstream } from "../images/types.ts";
import type { Log } from "../log_events.ts";
import { QUIRKS } from "../protocols/quirks/mod.ts";
import { startCallSpan } from "../observe/trace.ts";
import type { RetrievalUpstream } from "../retrieval/types.ts";
import { type AddressGuard, createAddressGuard } from "./address_guard.ts";
import { matchHeaders } from "./answers.ts";
import { createCanvas, createEmbedded, createEmbeddedRetrieval, embeddedImports } from "./embedded/mod.ts";
import { ISSUER } from "./embedded/thinking.ts";
import { createHttpUpstream } from "./http_upstream.ts";
import { modelIssuer } from "./prepare_attempt.ts";
import { createTransportSelector, type TransportSelector } from "./select_transport.ts";
import type { TimeLimits } from "./transport.ts";
import type { Upstream } from "./upstream.ts";
import { baseUrlOf, vendorOf } from "./vendors.ts";

/** The upstreams of a configuration, by name. */
export interface Upstreams {
  readonly upstreams: ReadonlyMap<string, Upstream>;
  /** The upstreams that make images, by the same names. */
  readonly imageUpstreams: ReadonlyMap<string, ImageUpstream>;
  /** The upstreams that make embeddings or rerank documents, by the same names. */
  readonly retrievalUpstreams: ReadonlyMap<string, RetrievalUpstream>;
}

/** Creates the upstreams of a configuration. No connection is opened yet. */
export function createUpstreams(
  { config, catalog, log }: { config: Config; catalog: Catalog; log: Log },
): Upstreams {
  const issuers = issuersOf(catalog, config);
  const guard = createAddressGuard(config.private_networks);
  const upstreams = new Map<string, Upstream>();
  const imageUpstreams = new Map<string, ImageUpstream>();
  const retrievalUpstreams = new Map<string, RetrievalUpstream>();
  const retrievalHosts = retrievalHostsOf(catalog);
  for (const [name, row] of Object.entries(config.upstreams)) {
    if (row.vendor === "embedded") {
      upstreams.set(name, createEmbedded());
      imageUpstreams.set(name, createCanvas());
      retrievalUpstreams.set(name, createEmbeddedRetrieval());
      continue;
    }
    const host = { name, row, transports: transportsTo(name, { row, log, guard }) };
    upstreams.set(name, createUpstream(host, issuers));
    if (vendorOf(row.vendor).images === true) imageUpstreams.set(name, createImageUpstream(host));
    if (retrievalHosts.has(name)) retrievalUpstreams.set(name, createRetrievalUpstream(host));
  }
  return { upstreams, imageUpstreams, retrievalUpstreams };
}

/** Yields functions that import the modules which upstreams would import with their first request. */
export function* upstreamImports(): Generator<() => Promise<unknown>> {
  yield () => import("./translation_attempt.ts");
  yield () => import("./openai_images.ts");
  yield () => import("./retrieval/http_retrieval.ts");
  yield* embeddedImports();
}

/** Closes all connections. */
export function closeUpstreams({ upstreams, imageUpstreams, retrievalUpstreams }: Upstreams): void {
  for (const upstreamsOfKind of [upstreams, imageUpstreams, retrievalUpstreams]) {
    for (const upstream of upstreamsOfKind.values()) upstream.close();
  }
}

/** Returns the names of the upstreams with models for embeddings or reranking. Only these need connections for them. */
function retrievalHostsOf({ models }: Catalog): ReadonlySet<string> {
  const rows = models.filter((model) => kindOf(model) === "embedding" || kindOf(model) === "rerank");
  return new Set(rows.flatMap(({ targets }) => targets.map(({ upstream }) => upstream)));
}

/** Returns the issuers of the signatures that the catalog's models make. */
function issuersOf({ models }: Catalog, { upstreams }: Config): ReadonlySet<string> {
  const issuers = models.flatMap(({ targets }) =>
    targets.flatMap(({ upstream: name, model }) => {
      const row = upstreams[name];
      if (row === undefined) return [];
      if (row.vendor === "embedded") return [ISSUER];
      return [modelIssuer(model, { name, vendor: vendorOf(row.vendor), quirk: QUIRKS[row.vendor] })];
    })
  );
  return new Set(issuers);
}

/** An upstream of the configuration that is reached over the network. */
interface Host {
  name: string;
  row: HttpUpstreamConfig;
  transports: TransportSelector;
}

function transportsTo(
  name: string,
  { row, log, guard }: { row: HttpUpstreamConfig; log: Log; guard: AddressGuard },
): TransportSelector {
  return createTransportSelector({
    guard,
    url: baseUrlOf(row),
    configured: row.transport,
    trace: startCallSpan,
    onFallback: (reason) => log({ level: "warn", event: "transport_fallback", upstream: name, to: "fetch", reason }),
  });
}

function createUpstream({ name, row, transports }: Host, issuers: ReadonlySet<string>): Upstream {
  const vendor = vendorOf(row.vendor);
  const [first, ...others] = row.protocols ?? vendor.protocols;
  const forwards = row.forward_headers && matchHeaders(row.forward_headers);
  return createHttpUpstream({
    name,
    vendor,
    baseUrl: baseUrlOf(row),
    protocols: [first ?? vendor.protocols[0], ...others],
    key: row.api_key,
    quirk: QUIRKS[row.vendor],
    issuers,
    limits: limitsOf(row),
    transport: transports.open({ keepsHeader: forwards }),
    forwards,
  });
}

function limitsOf({ timeouts }: HttpUpstreamConfig): TimeLimits {
  return {
    connectMs: timeouts.connect_ms,
    firstByteMs: timeouts.first_byte_ms,
    idleMs: timeouts.idle_ms,
    totalMs: timeouts.total_ms,
  };
}

/** Creates an upstream whose module is imported with its first request. */
function createRetrievalUpstream({ row, transports }: Host): RetrievalUpstream {
  const transport = transports.open();
  let upstream: RetrievalUpstream | undefined;
  const load = async () => {
    const { createHttpRetrieval } = await import("./retrieval/http_retrieval.ts");
    const vendor = vendorOf(row.vendor);
    return createHttpRetrieval({ vendor, baseUrl: baseUrlOf(row), key: row.api_key, limits: limitsOf(row), transport });
  };
  return {
    embed: async (call) => await (upstream ??= await load()).embed(call),
    rerank: async (call) => await (upstream ??= await load()).rerank(call),
    close: () => transport.close(),
  };
}

/** Creates an upstream whose module is imported with its first request. */
function createImageUpstream({ name, row, transports }: Host): ImageUpstream {
  const transport = transports.open({ idleConnections: 0 });
  let upstream: ImageUpstream | undefined;
  const load = async () => {
    const { createOpenaiImages } = await import("./openai_images.ts");
    const limits = { ...limitsOf(row), totalMs: row.timeouts.images_total_ms };
    const vendor = vendorOf(row.vendor);
    return createOpenaiImages({ name, vendor, baseUrl: baseUrlOf(row), key: row.api_key, limits, transport });
  };
  return {
    create: async (call) => await (upstream ??= await load()).create(call),
    close: () => transport.close(),
  };
}
