/** `GET /admin/v1/health`: the health of this process, for operators. */
import type { Gateway } from "../gateway.ts";
import type { RouteContext } from "../server/router.ts";
import { readiness } from "../status/health.ts";
import { adminResponse } from "./response.ts";
import type { HealthResponse } from "./schemas.ts";

/** Returns the health of this process. The HTTP status is always 200. */
export async function health(_request: Request, { gateway }: RouteContext): Promise<Response> {
  return adminResponse(await readHealth(gateway));
}

/** Reads the health of this process. */
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
    targets: gateway.health.snapshot(),
    open_requests: observer.open.requests,
    open_streams: observer.open.streams,
    uptime_seconds: Math.floor(observer.uptimeMs / 1000),
    loop_lag_ms: Math.round(observer.loop.lagMs),
    memory: { rss_bytes: rss, heap_used_bytes: heapUsed },
  };
}
