/** The bill and the price of single requests, over HTTP. */
import { GatewayError } from "../errors.ts";
import type { RouteContext } from "../http/router.ts";
import { explainRequest } from "../reports/explain.ts";
import { type Period, readPeriod } from "../reports/period.ts";
import { USAGE_BY, usageReport } from "../reports/usage.ts";
import { adminAnswer, longAdminAnswer } from "./answer.ts";
import { readQuery } from "./input.ts";

type Ends = Parameters<typeof readPeriod>[0];

/** Sums from `since` to `until`, by key unless `by` says otherwise. @throws {GatewayError} `invalid` */
export async function sumUsage(request: Request, { gateway }: RouteContext): Promise<Response> {
  const { by: asked = "key", ...ends } = readQuery(request, ["since", "until", "by"]);
  const by = USAGE_BY.find((name) => name === asked);
  if (by === undefined) {
    throw new GatewayError("invalid", `Cannot sum up by "${asked}": expected one of ${USAGE_BY.join(", ")}`, {
      param: "by",
    });
  }
  const { store, config, now } = gateway;
  const period = periodOf(ends, now());
  const report = await usageReport({ ledger: store.ledger, keys: store.keys, config }, { ...period, by });
  return await longAdminAnswer(report);
}

/** One request and its price, line by line. @throws {GatewayError} `not_found` where the ledger does not know it */
export async function explainUsage(_request: Request, { gateway, params }: RouteContext): Promise<Response> {
  const { request_id: id = "" } = params;
  const explanation = await explainRequest(gateway.store.ledger, id);
  if (explanation === undefined) {
    throw new GatewayError("not_found", `Cannot explain request "${id}": it is not in the ledger`);
  }
  return adminAnswer(explanation);
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
