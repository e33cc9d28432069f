/** The bill and the price of single requests, over HTTP. */
import { GatewayError } from "../errors.ts";
import type { RouteContext } from "../server/router.ts";
import { explainRequest } from "../billing/reports/explain.ts";
import { type Period, readPeriod } from "../billing/reports/period.ts";
import { type UpstreamReport, upstreamReport } from "../billing/reports/upstream_report.ts";
import { sumUpstreams, UpstreamQueryError } from "../billing/reports/upstreams.ts";
import { USAGE_BY, usageReport } from "../billing/reports/usage.ts";
import { adminResponse, streamedAdminResponse } from "./response.ts";
import { readQuery } from "./request_input.ts";

type Ends = Parameters<typeof readPeriod>[0];

/** The values of `by`. */
const KNOWN_BY = [...USAGE_BY, "upstream"] as const;

/** Sums from `since` to `until`, by key unless `by` says otherwise. @throws {GatewayError} `invalid` */
export async function sumUsage(request: Request, { gateway }: RouteContext): Promise<Response> {
  const { by: asked = "key", upstream, ...ends } = readQuery(request, ["since", "until", "by", "upstream"]);
  const by = KNOWN_BY.find((name) => name === asked);
  if (by === undefined) {
    throw new GatewayError("invalid", `Cannot sum up by "${asked}": expected one of ${KNOWN_BY.join(", ")}`, {
      param: "by",
    });
  }
  if (upstream !== undefined && by !== "upstream") {
    throw new GatewayError("invalid", 'Cannot use "upstream" without "by=upstream"', { param: "upstream" });
  }
  const { store, config, now } = gateway;
  const { ledger, keys } = store;
  const { signal } = request;
  const period = periodOf(ends, now());
  const report = by === "upstream"
    ? await reportUpstreams({ ledger, config }, { ...period, signal, ...(upstream !== undefined && { upstream }) })
    : await usageReport({ ledger, keys, config }, { ...period, signal, by });
  return await streamedAdminResponse(report);
}

async function reportUpstreams(...[parts, query]: Parameters<typeof sumUpstreams>): Promise<UpstreamReport> {
  try {
    return await upstreamReport(await sumUpstreams(parts, query), query);
  } catch (error) {
    if (!(error instanceof UpstreamQueryError)) throw error;
    throw new GatewayError("invalid", error.message, { param: error.param, cause: error });
  }
}

/** One request and its price, line by line. @throws {GatewayError} `not_found` where it is not in the ledger */
export async function explainUsage(_request: Request, { gateway, params }: RouteContext): Promise<Response> {
  const { request_id: id = "" } = params;
  const explanation = await explainRequest(gateway.store.ledger, id);
  if (explanation === undefined) {
    throw new GatewayError("not_found", `Cannot explain request "${id}": it is not in the ledger`);
  }
  return adminResponse(explanation);
}

function periodOf(ends: Ends, now: number): Period {
  try {
    return readPeriod(ends, now);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    // Where each end can be read alone, the end lies before the beginning.
    const param = ends.until === undefined || !isPeriod({ since: ends.since }, now) ? "since" : "until";
    throw new GatewayError("invalid", error.message, { param, cause: error });
  }
}

function isPeriod({ since }: Ends, now: number): boolean {
  try {
    readPeriod({ ...(since !== undefined && { since }) }, now);
    return true;
  } catch {
    return false;
  }
}
