/** `/admin/v1/usage`: sums up a period, and explains the price of a request. */
import { GatewayError } from "../errors.ts";
import type { RouteContext } from "../server/router.ts";
import { explainRequest } from "../billing/reports/explain.ts";
import { type Period, type PeriodTexts, readPeriod } from "../billing/reports/period.ts";
import type { UpstreamReport, UsageReport } from "../billing/reports/schemas.ts";
import { upstreamReport } from "../billing/reports/upstream_report.ts";
import { sumUpstreams } from "../billing/reports/upstreams.ts";
import { readGroupings, usageReport } from "../billing/reports/usage.ts";
import { readUsageFilter } from "../billing/reports/usage_filter.ts";
import { adminResponse, streamedAdminResponse } from "./response.ts";
import { readQuery, runReport } from "./request_input.ts";

/** Names of the query's parameters. */
const PARAMETERS = ["since", "until", "period", "by", "key", "group", "model", "user", "tag", "upstream"] as const;

/** Sums up a period, by key unless `by` names something else. @throws {GatewayError} `invalid` for wrong parameters */
export async function sumUsage(request: Request, { gateway }: RouteContext): Promise<Response> {
  const { by = "key", upstream, since, until, period: name, ...filter } = readQuery(request, PARAMETERS);
  if (upstream !== undefined && by !== "upstream") {
    throw new GatewayError("invalid", 'Cannot use "upstream" without "by=upstream"', { param: "upstream" });
  }
  const { store: { ledger, keys }, config, catalog, now } = gateway;
  const { signal } = request;
  const period = periodOf({ since, until, period: name }, now());
  const report = await runReport<UpstreamReport | UsageReport>(async () => {
    const only = await readUsageFilter(filter, { keys, config });
    if (by !== "upstream") {
      return await usageReport({ ledger, keys, config }, { ...period, ...readGroupings(by), only, signal });
    }
    const parts = { ledger, config: { ...config, models: catalog.models } };
    return await upstreamReport(await sumUpstreams(parts, { ...period, only, signal, upstream }), period);
  }, name === undefined ? "since" : "period");
  return await streamedAdminResponse(report);
}

/** Explains a request and its price, line by line. @throws {GatewayError} `not_found` if it is not in the ledger */
export async function explainUsage(_request: Request, { gateway, params }: RouteContext): Promise<Response> {
  const { request_id: id = "" } = params;
  const { store: { ledger, keys }, config } = gateway;
  const explanation = await explainRequest(ledger, id, { keys, config });
  if (explanation === undefined) {
    throw new GatewayError("not_found", `Cannot explain request "${id}": it is not in the ledger`);
  }
  return adminResponse(explanation);
}

/**
 * Reads the period of a query.
 * @param name name of the parameter that `period` comes from, for errors
 * @throws {GatewayError} `invalid` if it cannot be read
 */
export function periodOf(texts: PeriodTexts, now: number, name = "period"): Period {
  try {
    return readPeriod(texts, now);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    // If `since` alone is valid, `until` is wrong, or before `since`.
    const isUntil = texts.until !== undefined && isPeriod({ since: texts.since }, now);
    const boundary = isUntil ? "until" : "since";
    const param = texts.period !== undefined ? name : boundary;
    throw new GatewayError("invalid", error.message, { param, cause: error });
  }
}

function isPeriod(texts: PeriodTexts, now: number): boolean {
  try {
    readPeriod(texts, now);
    return true;
  } catch {
    return false;
  }
}
