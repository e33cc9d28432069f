/**
 * The metrics of a gateway: names, labels and help texts. Label values come from the configuration and this file, never
 * from clients.
 */
import { formatUsd } from "../billing/money.ts";
import type { Entry } from "../store/ledger.ts";
import type { Counter, Histogram, Reading, Registry } from "./registry.ts";
import { endpointOf, type RequestRecord } from "./request_record.ts";

/** Upper bounds in seconds: from cached answers to images that take minutes. */
const BUCKETS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];

/** Disjoint classes of tokens. */
const CLASSES = [
  "prompt",
  "input_cache_read",
  "input_cache_write_5m",
  "input_cache_write_1h",
  "completion",
] as const satisfies readonly (keyof Entry["tokens"])[];

const STATUS_CLASSES = ["other", "1xx", "2xx", "3xx", "4xx", "5xx"];

/** Labels of an attempt at a target. */
export interface AttemptLabels {
  upstream: string;
  /** Public id of the model. */
  model: string;
  outcome: string;
}

/** Labels of a circuit breaker change. */
export interface BreakerLabels {
  upstream: string;
  /** The upstream's model id; empty if the change concerns all its models. */
  model: string;
  state: string;
}

/** Metrics of requests. */
export interface RequestMetrics {
  /** Counts an ended request. */
  count(record: RequestRecord, seconds: number): void;
  /** Counts a refusal by a limit or budget. */
  refused(owner: string, unit: string): void;
  /** Counts an exceeded report-only limit. */
  exceeded(): void;
  /** Counts an attempt at a target, and the seconds until its answer began or it failed. */
  attempted(attempt: AttemptLabels, seconds: number): void;
  /** Counts a circuit breaker change. */
  breakerChanged(change: BreakerLabels): void;
}

/** Declares the metrics of requests. */
export function requestMetrics(registry: Registry): RequestMetrics {
  const requests = registry.counter("sluice_requests_total", {
    help: "Ended requests, by their ending.",
    labels: ["endpoint", "model", "upstream", "status_class", "ending"],
  });
  const errors = registry.counter("sluice_errors_total", {
    help: "Requests that ended with an error, by its kind.",
    labels: ["kind"],
  });
  const tokens = registry.counter("sluice_tokens_total", {
    help: "Tokens billed, by model and price class; the classes do not overlap.",
    labels: ["model", "class"],
  });
  const cost = registry.amounts("sluice_cost_usd_total", {
    help: "Cost of requests at clients' prices, in USD.",
    labels: ["group", "model"],
    write: formatUsd,
  });
  const first: Histogram = registry.histogram("sluice_first_event_seconds", {
    help: "Time to the first event or byte of an answer.",
    labels: ["endpoint"],
    buckets: BUCKETS,
  });
  const total: Histogram = registry.histogram("sluice_request_seconds", {
    help: "Time to the end of a request, streams included.",
    labels: ["endpoint"],
    buckets: BUCKETS,
  });
  const dropped: Counter = registry.counter("sluice_dropped_parameters_total", {
    help: "Parameters of requests that were not sent to the upstream.",
    labels: ["member"],
  });
  const refusals = registry.counter("sluice_limit_refusals_total", {
    help: "Requests refused by a limit or a budget, by its owner and unit; unit `usd` is a budget.",
    labels: ["owner", "unit"],
  });
  const reportOnly = registry.counter("sluice_report_only_exceeded_total", {
    help: "Requests that a limit with `report_only` would have refused.",
  });
  const attempts = registry.counter("sluice_upstream_attempts_total", {
    help: "Attempts at upstreams, by their outcome.",
    labels: ["upstream", "model", "outcome"],
  });
  const attemptSeconds = registry.histogram("sluice_upstream_attempt_seconds", {
    help: "Time until the answer of an attempt began or the attempt failed.",
    labels: ["upstream"],
    buckets: BUCKETS,
  });
  const breakerChanges = registry.counter("sluice_breaker_changes_total", {
    help: "Changes of circuit breakers, by the upstream's own model id and the new state.",
    labels: ["upstream", "model", "state"],
  });
  return {
    count(record, seconds) {
      const { entry, kind, status } = record;
      const endpoint = endpointOf(record);
      const statusClass = STATUS_CLASSES[Math.trunc(status / 100)] ?? "other";
      // Only answering models are labels: requested names are up to the client.
      requests.add([endpoint, entry?.model ?? "", entry?.upstream ?? "", statusClass, endingOf(record)]);
      if (kind !== undefined) errors.add([kind]);
      total.observe([endpoint], seconds);
      for (const name of record.dropped) dropped.add([name]);
      if (entry === undefined) return;
      if (entry.firstMs !== undefined) first.observe([endpoint], entry.firstMs / 1000);
      for (const name of CLASSES) {
        if (entry.tokens[name] > 0) tokens.add([entry.model, name], entry.tokens[name]);
      }
      if (entry.cost > 0n) cost.add([entry.group, entry.model], entry.cost);
    },
    refused: (owner, unit) => refusals.add([owner, unit]),
    exceeded: () => reportOnly.add([]),
    attempted({ upstream, model, outcome }, seconds) {
      attempts.add([upstream, model, outcome]);
      // The client ended the attempt, not the upstream.
      if (outcome !== "client_disconnected") attemptSeconds.observe([upstream], seconds);
    },
    breakerChanged: ({ upstream, model, state }) => breakerChanges.add([upstream, model, state]),
  };
}

/** The ending of a request, even without a meter. */
export function endingOf({ entry, status }: RequestRecord): string {
  if (entry !== undefined) return entry.ending;
  if (status === 499) return "client_disconnected";
  if (status >= 500) return "failed";
  return status >= 400 ? "refused" : "done";
}

/** Values read from the gateway at each rendering. */
export interface Vitals {
  openRequests: () => number;
  openStreams: () => number;
  /** Bytes of request bodies in memory. */
  heldBytes: () => number;
  /** Longest recent delay of the event loop, in seconds. */
  loopLag: () => number;
  /** Number of lost log lines. */
  linesLost: () => number;
  /** Bytes of stored recent responses. */
  keptBytes: () => number;
  ledgerQueue: () => number;
  ledgerHealthy: () => boolean;
  /** True while the store is reachable, and the number of entries that wait for it. */
  storeUp: () => boolean;
  journalEntries: () => number;
  /** True while limits are enforced across all nodes. */
  limitsStoreUp: () => boolean;
  configVersion: () => number;
  /** True while the active configuration is the latest. */
  configCurrent: () => boolean;
  /** Breakers by upstream and model, the worst first. */
  breakers: () => readonly Reading[];
  /** Budgets of groups and their rest in USD, and limits and their rest, the most used first. */
  groupBudgets: () => readonly Reading[];
  groupBudgetsLeft: () => readonly Reading[];
  groupLimits: () => readonly Reading[];
  groupLimitsLeft: () => readonly Reading[];
  /** In bytes. */
  memory: () => { rss: number; heapUsed: number };
  /** In seconds. */
  uptime: () => number;
  version: string;
}

/** Most breakers shown; closed ones are left out first. */
const MOST_BREAKERS = 150;

/** Most budgets and limits of groups shown; the least used are left out first. */
const MOST_GROUP_READINGS = 40;

/** Declares the metrics read from the gateway. */
export function vitalMetrics(registry: Registry, vitals: Vitals): void {
  const gauge = (name: string, help: string, value: () => number) =>
    registry.read(name, { help, type: "gauge", from: () => [{ value: value() }] });
  gauge("sluice_open_requests", "Running requests, streams included.", vitals.openRequests);
  gauge("sluice_open_streams", "Running streams.", vitals.openStreams);
  gauge("sluice_request_body_bytes", "Bytes of request bodies held in memory.", vitals.heldBytes);
  gauge("sluice_recent_response_bytes", "Bytes of recent responses held in memory.", vitals.keptBytes);
  gauge("sluice_ledger_queue", "Entries on their way into the ledger.", vitals.ledgerQueue);
  gauge("sluice_ledger_healthy", "1 while the ledger can be written, else 0.", () => vitals.ledgerHealthy() ? 1 : 0);
  gauge("sluice_store_up", "1 while the store of keys and bills answers, else 0.", () => vitals.storeUp() ? 1 : 0);
  gauge("sluice_store_journal_entries", "Entries that wait for the store in the journal.", vitals.journalEntries);
  gauge(
    "sluice_limits_store_up",
    "1 while limits are shared by all nodes, else 0.",
    () => vitals.limitsStoreUp() ? 1 : 0,
  );
  gauge("sluice_config_version", "Number of the configuration in force.", vitals.configVersion);
  gauge(
    "sluice_config_healthy",
    "1 while the configuration in force is the latest, else 0, such as after a refused file.",
    () => vitals.configCurrent() ? 1 : 0,
  );
  registry.read("sluice_breaker_state", {
    help:
      "Targets by the upstream's own model id: 0 closed, 1 half open, 2 cooling, 3 open, 4 quarantined. The 150 worst.",
    labels: ["upstream", "model"],
    type: "gauge",
    most: MOST_BREAKERS,
    from: vitals.breakers,
  });
  const ofGroups = (name: string, labels: readonly string[], help: string, from: () => readonly Reading[]) =>
    registry.read(name, { help, labels, type: "gauge", most: MOST_GROUP_READINGS, from });
  const limitLabels = ["group", "unit"];
  ofGroups("sluice_group_budget_usd", ["group"], "Budgets of groups, in USD. The 40 most used.", vitals.groupBudgets);
  ofGroups(
    "sluice_group_budget_left_usd",
    ["group"],
    "Rest of the budgets of groups after spent and held amounts, in USD.",
    vitals.groupBudgetsLeft,
  );
  ofGroups("sluice_group_limit", limitLabels, "Limits of groups, by unit. The 40 most used.", vitals.groupLimits);
  ofGroups("sluice_group_limit_left", limitLabels, "Present rest of the limits of groups.", vitals.groupLimitsLeft);
  gauge("sluice_event_loop_lag_seconds", "Longest delay of the event loop in the last 15 seconds.", vitals.loopLag);
  registry.read("sluice_log_lines_lost_total", {
    help: "Log lines lost because their reader was too slow.",
    type: "counter",
    from: () => [{ value: vitals.linesLost() }],
  });
  gauge("process_resident_memory_bytes", "Resident memory.", () => vitals.memory().rss);
  gauge("sluice_heap_used_bytes", "Used heap of the JavaScript engine.", () => vitals.memory().heapUsed);
  gauge("sluice_uptime_seconds", "Time since the start.", vitals.uptime);
  registry.read("sluice_build_info", {
    help: "Always 1; the version is a label.",
    labels: ["version"],
    type: "gauge",
    from: () => [{ labels: { version: vitals.version }, value: 1 }],
  });
}
