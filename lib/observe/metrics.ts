/**
 * Declares the metrics of a gateway: names, labels and help texts. docs/reference/metrics.md is generated from them.
 * Label values come from the configuration and this file, never from clients.
 */
import { formatUsd } from "../billing/money.ts";
import type { Entry } from "../store/ledger.ts";
import type { Counter, Histogram, MetricDeclarations, Reading } from "./registry.ts";
import { endpointOf, type RequestRecord } from "./request_record.ts";

/** Upper bounds of histogram buckets, in seconds: from cached answers to images that take minutes. */
const BUCKETS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];

/** Price classes of tokens, which do not overlap. */
const TOKEN_CLASSES = [
  "prompt",
  "input_cache_read",
  "input_cache_write_5m",
  "input_cache_write_1h",
  "completion",
] as const satisfies readonly (keyof Entry["tokens"])[];

/** Label values by the first digit of the status. */
const STATUS_CLASSES = ["other", "1xx", "2xx", "3xx", "4xx", "5xx"];

/** Labels of an attempt at a target. */
export interface AttemptLabels {
  upstream: string;
  /** Public id of the model. */
  model: string;
  outcome: string;
}

/** Labels of a change of a circuit breaker. */
export interface BreakerLabels {
  upstream: string;
  /** The upstream's model id; empty if the change concerns all its models. */
  model: string;
  state: string;
}

/** Records the metrics of requests. */
export interface RequestMetrics {
  count(record: RequestRecord, seconds: number): void;
  /** Counts a refusal by a limit or budget. */
  refused(owner: string, unit: string): void;
  /** Counts an exceeded report-only limit. */
  exceeded(): void;
  /** Counts an attempt at a target, and the seconds until its answer began or it failed. */
  attempted(attempt: AttemptLabels, seconds: number): void;
  breakerChanged(change: BreakerLabels): void;
}

/** Declares the metrics of requests. */
export function requestMetrics(registry: MetricDeclarations): RequestMetrics {
  const requests = registry.counter("sluice_requests_total", {
    help: "Ended requests, by their ending.",
    labels: ["endpoint", "model", "upstream", "status_class", "ending"],
  });
  const errors = registry.counter("sluice_errors_total", {
    help: "Requests that ended with an error, by the kind of the error.",
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
  const firstEventSeconds: Histogram = registry.histogram("sluice_first_event_seconds", {
    help: "Time to the first event or byte of an answer.",
    labels: ["endpoint"],
    buckets: BUCKETS,
  });
  const requestSeconds: Histogram = registry.histogram("sluice_request_seconds", {
    help: "Time to the end of a request, including streams.",
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
    help: "State changes of circuit breakers, by the upstream's own model id and the new state.",
    labels: ["upstream", "model", "state"],
  });
  return {
    count(record, seconds) {
      const { entry, kind, status } = record;
      const endpoint = endpointOf(record);
      const statusClass = STATUS_CLASSES[Math.trunc(status / 100)] ?? "other";
      // The label is the model that answered. The requested name comes from the client and could be anything.
      requests.add([endpoint, entry?.model ?? "", entry?.upstream ?? "", statusClass, endingOf(record)]);
      if (kind !== undefined) errors.add([kind]);
      requestSeconds.observe([endpoint], seconds);
      if (entry === undefined) return;
      for (const name of entry.details?.dropped ?? []) dropped.add([name]);
      if (entry.firstMs !== undefined) firstEventSeconds.observe([endpoint], entry.firstMs / 1000);
      for (const name of TOKEN_CLASSES) {
        if (entry.tokens[name] > 0) tokens.add([entry.model, name], entry.tokens[name]);
      }
      if (entry.cost > 0n) cost.add([entry.group, entry.model], entry.cost);
    },
    refused: (owner, unit) => refusals.add([owner, unit]),
    exceeded: () => reportOnly.add([]),
    attempted({ upstream, model, outcome }, seconds) {
      attempts.add([upstream, model, outcome]);
      // An attempt that the client ended says nothing about the upstream's speed.
      if (outcome !== "client_disconnected") attemptSeconds.observe([upstream], seconds);
    },
    breakerChanged: ({ upstream, model, state }) => breakerChanges.add([upstream, model, state]),
  };
}

/** Returns the ending of a request: from its ledger entry, or else by its status. */
export function endingOf({ entry, status }: RequestRecord): string {
  if (entry !== undefined) return entry.ending;
  if (status === 499) return "client_disconnected";
  if (status >= 500) return "failed";
  return status >= 400 ? "refused" : "done";
}

/** A budget or limit of a group, and how much of it remains. */
export interface GroupAllowance {
  labels: NonNullable<Reading["labels"]>;
  total: Reading["value"];
  remaining: Reading["value"];
}

/** Values of the gateway at one moment. Switches are shown as 1 or 0. */
export interface Vitals {
  /** Number of requests in flight, including streams. */
  openRequests: number;
  openStreams: number;
  /** Bytes of request bodies in memory. */
  heldBytes: number;
  /** Longest recent delay of the event loop, in seconds. */
  loopLag: number;
  linesLost: number;
  /** Bytes of recent responses in memory. */
  keptBytes: number;
  /** Number of entries that are not in the ledger yet. */
  ledgerQueue: number;
  /** True if the ledger can be written. */
  ledgerHealthy: boolean;
  /** True if the store is reachable. */
  storeUp: boolean;
  /** Number of entries in the journal that wait for the store. */
  journalEntries: number;
  /** True if limits are enforced across all nodes. */
  limitsStoreUp: boolean;
  configVersion: number;
  /** True if the active configuration is the latest. */
  configCurrent: boolean;
  /** States of circuit breakers by upstream and model, the worst first. */
  breakers: readonly Reading[];
  /** Budgets of groups in USD, the most used first. */
  groupBudgets: readonly GroupAllowance[];
  /** Limits of groups, the most used first. */
  groupLimits: readonly GroupAllowance[];
  /** Memory in bytes. */
  rss: number;
  heapUsed: number;
  /** Time since the start, in seconds. */
  uptime: number;
  version: string;
}

/** Largest number of circuit breakers that are shown; closed ones are left out first. */
const MAX_BREAKERS = 150;

/** Largest number of budgets or limits of groups that are shown; the least used are left out first. */
const MAX_GROUP_READINGS = 40;

/** Declares the metrics whose values are read at each rendering. @param vitals returns the values of the present one */
export function vitalMetrics(registry: MetricDeclarations, vitals: () => Vitals): void {
  const gauge = (name: string, help: string, valueOf: (vitals: Vitals) => number | boolean) =>
    registry.read(name, { help, type: "gauge", from: () => [{ value: Number(valueOf(vitals())) }] });
  const ofGroups = (name: string, labels: readonly string[], help: string, listOf: (vitals: Vitals) => Reading[]) =>
    registry.read(name, { help, labels, type: "gauge", maxSeries: MAX_GROUP_READINGS, from: () => listOf(vitals()) });
  const totalOf = ({ labels, total: value }: GroupAllowance): Reading => ({ labels, value });
  const remainingOf = ({ labels, remaining: value }: GroupAllowance): Reading => ({ labels, value });
  gauge("sluice_open_requests", "Running requests, including streams.", (of) => of.openRequests);
  gauge("sluice_open_streams", "Running streams.", (of) => of.openStreams);
  gauge("sluice_request_body_bytes", "Bytes of request bodies held in memory.", (of) => of.heldBytes);
  gauge("sluice_recent_response_bytes", "Bytes of recent responses held in memory.", (of) => of.keptBytes);
  gauge("sluice_ledger_queue", "Entries that are not yet durable in the ledger.", (of) => of.ledgerQueue);
  gauge("sluice_ledger_healthy", "1 while the ledger can be written, else 0.", (of) => of.ledgerHealthy);
  gauge("sluice_store_up", "1 while the store of keys and the ledger answers, else 0.", (of) => of.storeUp);
  gauge("sluice_store_journal_entries", "Entries that wait for the store in the journal.", (of) => of.journalEntries);
  gauge("sluice_limits_store_up", "1 while limits are shared by all nodes, else 0.", (of) => of.limitsStoreUp);
  gauge("sluice_config_version", "Version number of the configuration in force.", (of) => of.configVersion);
  gauge(
    "sluice_config_healthy",
    "1 while the configuration in force is the latest, else 0, such as after a refused file.",
    (of) => of.configCurrent,
  );
  registry.read("sluice_breaker_state", {
    help:
      "States of circuit breakers, by the upstream's own model id: 0 closed, 1 half open, 2 cooling, 3 open, 4 quarantined. Only the 150 worst.",
    labels: ["upstream", "model"],
    type: "gauge",
    maxSeries: MAX_BREAKERS,
    from: () => vitals().breakers,
  });
  ofGroups(
    "sluice_group_budget_usd",
    ["group"],
    "Budgets of groups, in USD. Only the 40 most used.",
    (of) => of.groupBudgets.map(totalOf),
  );
  ofGroups(
    "sluice_group_budget_left_usd",
    ["group"],
    "Budgets of groups minus spent and held amounts, in USD.",
    (of) => of.groupBudgets.map(remainingOf),
  );
  const limitLabels = ["group", "unit"];
  ofGroups(
    "sluice_group_limit",
    limitLabels,
    "Limits of groups, by unit. Only the 40 most used.",
    (of) => of.groupLimits.map(totalOf),
  );
  ofGroups(
    "sluice_group_limit_left",
    limitLabels,
    "Unused part of the limits of groups, by unit.",
    (of) => of.groupLimits.map(remainingOf),
  );
  gauge("sluice_event_loop_lag_seconds", "Longest delay of the event loop in the last 15 seconds.", (of) => of.loopLag);
  registry.read("sluice_log_lines_lost_total", {
    help: "Log lines lost because their reader was too slow or gone, or its disk full.",
    type: "counter",
    from: () => [{ value: vitals().linesLost }],
  });
  gauge("process_resident_memory_bytes", "Resident memory.", (of) => of.rss);
  gauge("sluice_heap_used_bytes", "Used heap of the JavaScript engine.", (of) => of.heapUsed);
  gauge("sluice_uptime_seconds", "Time since the start.", (of) => of.uptime);
  registry.read("sluice_build_info", {
    help: "Always 1; the version is a label.",
    labels: ["version"],
    type: "gauge",
    from: () => [{ labels: { version: vitals().version }, value: 1 }],
  });
}
