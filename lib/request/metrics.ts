/** The metrics of the gateway, for whoever may read them. */
import denoJson from "../../deno.json" with { type: "json" };
import type { Gateway } from "../gateway.ts";
import type { Reading } from "../observe/registry.ts";
import type { HealthRow } from "../routing/health.ts";
import { type GroupReadings, readGroups } from "./group_readings.ts";
import { healthRows, isCurrent } from "./health.ts";

/** What a breaker's state is as a number: the higher the worse. */
const STATES: Readonly<Record<HealthRow["state"], number>> = {
  closed: 0,
  half_open: 1,
  cooling: 2,
  open: 3,
  quarantined: 4,
};

/** `GET /metrics`, in Prometheus's text format 0.0.4. */
export async function metrics(gateway: Gateway): Promise<Response> {
  const body = new TextEncoder().encode(metricsText(gateway, await readGroups(gateway)));
  return new Response(body, {
    headers: {
      "content-type": "text/plain; version=0.0.4; charset=utf-8",
      "content-length": String(body.byteLength),
      "cache-control": "no-store",
    },
  });
}

function metricsText(gateway: Gateway, groups: GroupReadings): string {
  const { observer, ledger, limiter, recall, reloader, store } = gateway;
  return observer.metrics({
    keptBytes: () => recall.bytes,
    ledgerQueue: () => ledger.queued,
    ledgerHealthy: () => ledger.healthy,
    storeUp: () => store.shared?.reach().up ?? true,
    journalEntries: () => store.shared?.reach().waiting ?? 0,
    limitsStoreUp: () => limiter.healthy,
    configVersion: () => reloader.status().version,
    configCurrent: () => isCurrent(gateway),
    breakers: () => breakers(gateway),
    ...groups,
    memory: () => Deno.memoryUsage(),
    version: denoJson.version,
  });
}

/** A breaker counts as open until a request tries the target: where requests are rare, that takes longer than it is open. */
function breakerValue({ state, awaits_trial: awaitsTrial }: HealthRow): number {
  return awaitsTrial ? Math.max(STATES.open, STATES[state]) : STATES[state];
}

/** The worst first. */
function breakers(gateway: Gateway): Reading[] {
  return healthRows(gateway)
    .map((row) => ({ row, value: breakerValue(row) }))
    .sort((a, b) => b.value - a.value)
    .map(({ row: { upstream, model }, value }) => ({ labels: { upstream, model }, value }));
}
