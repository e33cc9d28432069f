/** The log line of a request. */
import type { LogLevel } from "../log_events.ts";
import { formatUsd } from "../billing/money.ts";
import { endpointOf, type RequestRecord } from "./request_record.ts";

/** Level, event and facts; unknown facts are absent. */
export interface RequestLogLine {
  level: LogLevel;
  event: "request";
  [fact: string]: string | number | boolean | undefined;
}

/** Most member names in one line. */
const MOST_NAMES = 32;

/** Creates the log line of an ended request. `ms`: its duration. */
export function requestLogLine(record: RequestRecord, { ms, ending }: { ms: number; ending: string }): RequestLogLine {
  const { entry, dropped } = record;
  const line: RequestLogLine = {
    level: levelOf(record),
    event: "request",
    request_id: record.id,
    method: record.method,
    route: record.route === "" ? undefined : record.route,
    endpoint: endpointOf(record.route),
    status: record.status,
    ending,
    kind: record.kind,
    code: record.code,
    param: record.param,
    key_id: record.keyId,
    key_name: record.keyName,
    group: record.group,
    client_address: record.address,
    model: record.asked,
    model_answered: answeredBy(record),
    protocol: record.protocol,
    streamed: record.streamed,
    dropped: dropped.length === 0 ? undefined : dropped.slice(0, MOST_NAMES).join(","),
    bytes_in: record.bytesIn,
    bytes_out: record.bytesOut,
    total_ms: Math.round(ms),
  };
  if (entry === undefined) return line;
  line.upstream = entry.upstream === "" ? undefined : entry.upstream;
  line.attempts = entry.attempts;
  line.first_ms = entry.firstMs;
  for (const [name, count] of Object.entries(entry.tokens)) {
    if (count > 0) line[`tokens_${name}`] = count;
  }
  for (const { item, count } of entry.details?.extras ?? []) line[`extra_${item}`] = count;
  line.images = entry.images > 0 ? entry.images : undefined;
  line.source = entry.source;
  line.cost = formatUsd(entry.cost);
  return line;
}

/** The model of the last attempt. */
function answeredBy({ entry }: RequestRecord): string | undefined {
  if (entry === undefined || entry.attempts === 0) return undefined;
  return entry.model === "" ? undefined : entry.model;
}

/** The gateway's own failures are errors; failures of others and overload are warnings. */
function levelOf({ kind, status }: RequestRecord): RequestLogLine["level"] {
  if (kind === "internal") return "error";
  return status >= 500 || kind === "upstream" || kind === "timeout" || kind === "overloaded" ? "warn" : "info";
}
