/** The health of the gateway for operators, over HTTP. */
import type { ConfigStatus } from "../config/reloader.ts";
import type { Gateway } from "../gateway.ts";
import type { RouteContext } from "../server/router.ts";
import { healthRows, type Readiness, readiness } from "../status/health.ts";
import type { HealthRow } from "../routing/health.ts";
import { adminResponse } from "./response.ts";

/** The response with the health of the gateway. It has names only: no address, no key. */
export interface HealthResponse extends Readiness {
  object: "health";
  /** The configuration in force, and why the last other one is not. */
  config: ConfigStatus;
  /** Entries on their way into the ledger. */
  ledger_queue: number;
  /** Entries that wait in the journal for a store that is out of reach. */
  journal_entries: number;
  /** The kind of store that counts limits. */
  limits: "memory" | "redis";
  /** Targets that were asked so far. */
  targets: HealthRow[];
  open_requests: number;
  open_streams: number;
  uptime_seconds: number;
  loop_lag_ms: number;
  memory: { rss_bytes: number; heap_used_bytes: number };
}

/** `GET /admin/v1/health`. The status is always 200. */
export async function health(_request: Request, { gateway }: RouteContext): Promise<Response> {
  return adminResponse(await readHealth(gateway));
}

/** The health of this process. */
export async function readHealth(gateway: Gateway): Promise<HealthResponse> {
  const { rss, heapUsed } = Deno.memoryUsage();
  const { config, ledger, observer, reloader, store } = gateway;
  return {
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
}
