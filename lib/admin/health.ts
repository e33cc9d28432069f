/** Everything an operator wants to see at one glance, over HTTP. */
import type { ConfigStatus } from "../config/reloader.ts";
import type { RouteContext } from "../server/router.ts";
import { healthRows, type Readiness, readiness } from "../request/health.ts";
import type { HealthRow } from "../routing/health.ts";
import { adminResponse } from "./response.ts";

/** The health of the gateway, as it is told. Names alone: no address, no key. */
export interface HealthResponse extends Readiness {
  object: "health";
  /** The configuration in force, and why the last other one is not. */
  config: ConfigStatus;
  /** Entries on their way into the ledger. */
  ledger_queue: number;
  /** Entries that wait in the journal for a store that is out of reach. */
  journal_entries: number;
  /** Where limits are counted. */
  limits: "memory" | "redis";
  /** Targets that were asked so far. */
  targets: HealthRow[];
  open_requests: number;
  open_streams: number;
  uptime_seconds: number;
  loop_lag_ms: number;
  memory: { rss_bytes: number; heap_used_bytes: number };
}

/** `GET /admin/v1/health`. Its status is 200, whatever it tells. */
export async function health(_request: Request, { gateway }: RouteContext): Promise<Response> {
  const { rss, heapUsed } = Deno.memoryUsage();
  const { config, ledger, observer, reloader, store } = gateway;
  const answer: HealthResponse = {
    object: "health",
    ...await readiness(gateway),
    config: reloader.status(),
    ledger_queue: ledger.queued,
    journal_entries: store.shared?.reach().waiting ?? 0,
    limits: config.limits_store.kind,
    targets: healthRows(gateway),
    open_requests: observer.open.requests,
    open_streams: observer.open.streams,
    uptime_seconds: Math.floor(observer.uptimeMs / 1000),
    loop_lag_ms: Math.round(observer.loop.lagMs),
    memory: { rss_bytes: rss, heap_used_bytes: heapUsed },
  };
  return adminResponse(answer);
}
