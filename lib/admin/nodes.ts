/** Reports of each node about itself, which the nodes of a store exchange over it. */
import denoJson from "../../deno.json" with { type: "json" };
import type { Gateway } from "../gateway.ts";
import type { JsonObject } from "../json/mod.ts";
import type { NodeReport } from "../store/store.ts";
import { readHealth } from "./health.ts";
import type { HealthResponse } from "./schemas.ts";

/** Interval between two reports of a node, in milliseconds. */
const REPORT_INTERVAL_MS = 10_000;

/** Time without a report after which a node is no longer listed, in milliseconds. */
const FORGET_MS = 600_000;

/** Time without a report after which a node counts as silent, in milliseconds. */
const SILENT_MS = 3 * REPORT_INTERVAL_MS;

/** The latest report of a node about itself. */
export interface NodeState {
  id: string;
  /** True if this is the node that answers the request. */
  isThis: boolean;
  /** True if it has not reported for 30 seconds. */
  isSilent: boolean;
  /** Time of the report, ISO 8601. */
  reported_at: string;
  facts: NodeFacts;
}

/** The facts of a report that come from the health of the node. */
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

/** The facts of a report. They contain no keys and no addresses of upstreams. */
export interface NodeFacts extends HealthFacts {
  version: string;
  pid: number;
  listens_on: string;
  rss_bytes: number;
  /** Version of the active configuration: the store's version if nodes share one. */
  config_version: number;
}

/** Node ids of the gateways of this process. Their keys are the observers, which stay the same after a reload. */
const ids = new WeakMap<Gateway["observer"], string>();

function nodeId({ observer }: Pick<Gateway, "observer">): string {
  const id = ids.get(observer) ?? crypto.randomUUID().slice(0, 8);
  ids.set(observer, id);
  return id;
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

/** Returns the nodes of the store, this one first. If the store is unreachable or not shared, only this one. */
export async function readNodes(gateway: Gateway): Promise<NodeState[]> {
  const at = gateway.now();
  const own = { id: nodeId(gateway), at, facts: await readFacts(gateway) };
  const reports: NodeReport[] = await gateway.store.shared?.nodes.list(at - FORGET_MS).catch(() => []) ?? [];
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
 * Reports this node now and every ten seconds, if the store is shared. Failures are ignored, because an unreachable
 * store is logged elsewhere. Returns a function that ends the reports and deletes the last one.
 */
export function startNodeReports(current: () => Gateway): () => void {
  const { store: { shared } } = current();
  if (shared === undefined) return () => {};
  const { nodes } = shared;
  async function report(): Promise<void> {
    const gateway = current();
    const facts = await readFacts(gateway) as unknown as JsonObject;
    await nodes.report({ id: nodeId(gateway), at: gateway.now(), facts }, gateway.now() - FORGET_MS);
  }
  const tick = () => void report().catch(() => {});
  tick();
  const timer = setInterval(tick, REPORT_INTERVAL_MS);
  return () => {
    clearInterval(timer);
    nodes.leave(nodeId(current())).catch(() => {});
  };
}
