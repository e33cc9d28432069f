/** Everything an operator wants to see at one glance, over HTTP. */
import type { ConfigStatus } from "../config/reloader.ts";
import type { IsolateHealth } from "../gateway.ts";
import type { RouteContext } from "../server/router.ts";
import { isCurrent, isolateHealth, outageOf, type Readiness, readinessOf } from "../request/health.ts";
import type { HealthRow } from "../routing/health.ts";
import { adminAnswer } from "./answer.ts";

/** The health of the gateway, as it is told. Names alone: no address, no key. */
export interface HealthAnswer extends Readiness {
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
  const { rss } = Deno.memoryUsage();
  const isolates = await gateway.whole?.health() ?? [await isolateHealth(gateway)];
  const sum = (value: (isolate: IsolateHealth) => number) => isolates.reduce((all, one) => all + value(one), 0);
  const most = (value: (isolate: IsolateHealth) => number) => Math.max(...isolates.map(value));
  const targets = allTargets(isolates);
  const answer: HealthAnswer = {
    object: "health",
    ...readinessOf({
      store: isolates.every(({ store }) => store),
      outage: outageOf(gateway),
      ledger: isolates.every(({ ledger }) => ledger),
      targets,
      isCurrent: isCurrent(gateway),
      breaker: gateway.config.routing.breaker,
    }),
    config: gateway.reloader.status(),
    ledger_queue: sum(({ ledgerQueue }) => ledgerQueue),
    journal_entries: gateway.store.shared?.reach().waiting ?? 0,
    limits: gateway.config.limits_store.kind,
    targets,
    open_requests: sum(({ openRequests }) => openRequests),
    open_streams: sum(({ openStreams }) => openStreams),
    uptime_seconds: Math.floor(most(({ uptimeMs }) => uptimeMs) / 1000),
    loop_lag_ms: Math.round(most(({ lagMs }) => lagMs)),
    memory: { rss_bytes: rss, heap_used_bytes: sum(({ heapUsedBytes }) => heapUsedBytes) },
  };
  return adminAnswer(answer);
}

/** From the best to the worst. */
const STATES: readonly HealthRow["state"][] = ["closed", "half_open", "cooling", "open", "quarantined"];

/** Each target once, as the isolate knows it that thinks the worst of it; requests are those of all. */
function allTargets(isolates: readonly IsolateHealth[]): HealthRow[] {
  const rows = Map.groupBy(
    isolates.flatMap(({ targets }) => targets),
    ({ upstream, model }) => `${upstream}\n${model}`,
  );
  return [...rows.values()].flatMap((same) => {
    const [worst, ...others] = same.toSorted((a, b) => STATES.indexOf(b.state) - STATES.indexOf(a.state));
    if (worst === undefined) return [];
    const failures = others.reduce((sum, row) => sum + row.failures, worst.failures);
    const samples = others.reduce((sum, row) => sum + row.samples, worst.samples);
    const consecutive_failures = Math.max(...same.map((row) => row.consecutive_failures));
    return [{ ...worst, failures, samples, consecutive_failures }];
  });
}
