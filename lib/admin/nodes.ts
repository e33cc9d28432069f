/** Reports of the nodes about themselves, over the store that they share. */
import denoJson from "../../deno.json" with { type: "json" };
import type { Gateway } from "../gateway.ts";
import type { JsonObject } from "../json/mod.ts";
import type { NodeReport } from "../store/store.ts";
import { readHealth } from "./health.ts";
import type { HealthResponse } from "./schemas.ts";

/** Interval of the reports, in milliseconds. */
const REPORT_MS = 10_000;

/** Time after which a node that is silent is no longer listed, in milliseconds. */
const FORGOTTEN_MS = 600_000;

/** Time after which a node counts as silent, in milliseconds: three reports. */
const SILENT_MS = 3 * REPORT_MS;

/** The latest report of a node about itself. */
export interface NodeState {
  id: string;
  /** True: it answers this request. */
  isThis: boolean;
  /** True: it has not reported for a while. */
  isSilent: boolean;
  /** ISO 8601. */
  reported_at: string;
  facts: NodeFacts;
}

/** Facts of a node that its health has, too. */
type HealthFacts = Pick<
  HealthResponse,
  | "status"
  | "uptime_seconds"
  | "open_requests"
  | "open_streams"
  | "loop_lag_ms"
  | "store"
  | "ledger"
  | "ledger_queue"
  | "journal_entries"
  | "limits"
  | "limits_healthy"
>;

/** A report of a node about itself. Names and numbers only: no keys, no addresses of upstreams. */
export interface NodeFacts extends HealthFacts {
  version: string;
  pid: number;
  listens_on: string;
  rss_bytes: number;
  /** Version of the configuration in force: that of the store where nodes share one. */
  config_version: number;
}

/** Ids of the gateways of this process, by what outlives a configuration. */
const ids = new WeakMap<Gateway["observer"], string>();

function nodeId({ observer }: Pick<Gateway, "observer">): string {
  const known = ids.get(observer) ?? crypto.randomUUID().slice(0, 8);
  ids.set(observer, known);
  return known;
}

async function readFacts(gateway: Gateway): Promise<NodeFacts> {
  const { hostname, port } = gateway.config.listen;
  const health = await readHealth(gateway);
  return {
    version: denoJson.version,
    pid: Deno.pid,
    listens_on: `${hostname}:${port}`,
    status: health.status,
    uptime_seconds: health.uptime_seconds,
    open_requests: health.open_requests,
    open_streams: health.open_streams,
    loop_lag_ms: health.loop_lag_ms,
    rss_bytes: health.memory.rss_bytes,
    store: health.store,
    ledger: health.ledger,
    ledger_queue: health.ledger_queue,
    journal_entries: health.journal_entries,
    limits: health.limits,
    limits_healthy: health.limits_healthy,
    config_version: health.config.shared?.version ?? health.config.version,
  };
}

/** This node and the others of its store, this one first. While the store is out of reach, this one alone. */
export async function readNodes(gateway: Gateway): Promise<NodeState[]> {
  const at = gateway.now();
  const own = { id: nodeId(gateway), at, facts: await readFacts(gateway) };
  const reports: NodeReport[] = await gateway.store.shared?.nodes.list(at - FORGOTTEN_MS).catch(() => []) ?? [];
  const others = reports.filter(({ id }) => id !== own.id);
  return [own, ...others].map(({ id, at: reported, facts }) => ({
    id,
    isThis: id === own.id,
    isSilent: at - reported > SILENT_MS,
    reported_at: new Date(reported).toISOString(),
    facts: facts as unknown as NodeFacts,
  }));
}

/**
 * Reports this node to the others, now and every ten seconds, where there can be others. A store that is out of reach
 * is logged elsewhere. Returns a function that ends the reports and withdraws the last one.
 */
export function startNodeReports(current: () => Gateway): () => void {
  const { store: { shared } } = current();
  if (shared === undefined) return () => {};
  const { nodes } = shared;
  async function report(): Promise<void> {
    const gateway = current();
    const facts = await readFacts(gateway) as unknown as JsonObject;
    await nodes.report({ id: nodeId(gateway), at: gateway.now(), facts }, gateway.now() - FORGOTTEN_MS);
  }
  const tick = () => void report().catch(() => {});
  tick();
  const timer = setInterval(tick, REPORT_MS);
  return () => {
    clearInterval(timer);
    nodes.leave(nodeId(current())).catch(() => {});
  };
}
