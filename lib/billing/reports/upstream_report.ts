/** Makes the upstream report of the admin API and the CLI from sums. */
import { formatUsd } from "../money.ts";
import { mapSliced } from "../../scheduler.ts";
import { dayName } from "../../store/days.ts";
import type { Period } from "./period.ts";
import type { UpstreamLine, UpstreamReport } from "./schemas.ts";
import { totalOf, type UpstreamFigures, type UpstreamSum } from "./upstreams.ts";

/** Formats the sums of a period, with pauses: there may be one for every upstream, model and day. */
export async function upstreamReport(sums: readonly UpstreamSum[], { since, until }: Period): Promise<UpstreamReport> {
  return {
    since: new Date(since).toISOString(),
    until: new Date(until).toISOString(),
    by: "upstream",
    lines: await mapSliced(sums, toLine),
    total: figuresOf(totalOf(sums)),
  };
}

function toLine({ upstream, model, day, ...figures }: UpstreamSum): UpstreamLine {
  return { upstream, model, day: dayName(day), ...figuresOf(figures) };
}

function figuresOf({ upstreamCost, cost, ...counts }: UpstreamFigures): UpstreamReport["total"] {
  return {
    ...counts,
    upstream_usd: formatUsd(upstreamCost),
    cost_usd: formatUsd(cost),
    margin_usd: formatUsd(cost - upstreamCost),
  };
}
