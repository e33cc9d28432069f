/** The upstream report as JSON. */
import { formatUsd } from "../money.ts";
import { mapSliced } from "../../scheduler.ts";
import { dayName } from "../../store/days.ts";
import type { Period } from "./period.ts";
import type { UpstreamSum } from "./upstreams.ts";

/** A sum as reported. Amounts are exact USD, as decimal strings. */
export interface UpstreamLine extends Omit<UpstreamSum, "day" | "upstreamCost" | "cost"> {
  /** By UTC, as `2026-11-21`. */
  day: string;
  /** Cost at the given prices, else at those of the targets; `unpriced` requests cost their catalog prices. */
  upstream_usd: string;
  /** Amount that customers pay. */
  cost_usd: string;
  /** `cost_usd` minus `upstream_usd`. */
  margin_usd: string;
}

/** The upstream report of a period. */
export interface UpstreamReport {
  /** UTC times, as `2026-11-01T00:00:00.000Z`; `until` is exclusive. */
  since: string;
  until: string;
  by: "upstream";
  /** Ordered by upstream, model and day. */
  lines: UpstreamLine[];
}

/** Formats the sums of a period in slices: there may be one for every upstream, model and day. */
export async function upstreamReport(sums: readonly UpstreamSum[], { since, until }: Period): Promise<UpstreamReport> {
  return {
    since: new Date(since).toISOString(),
    until: new Date(until).toISOString(),
    by: "upstream",
    lines: await mapSliced(sums, toLine),
  };
}

function toLine({ day, upstreamCost, cost, ...sum }: UpstreamSum): UpstreamLine {
  return {
    ...sum,
    day: dayName(day),
    upstream_usd: formatUsd(upstreamCost),
    cost_usd: formatUsd(cost),
    margin_usd: formatUsd(cost - upstreamCost),
  };
}
