/** Writes bills and sums by upstream as CSV, and makes the rows of comparisons with invoices. Amounts are exact. */
import { formatUsd } from "../money.ts";
import { dayName, TOKEN_CLASSES } from "../../store/days.ts";
import { csvText } from "../../csv.ts";
import type { ComparedLine } from "./invoice.ts";
import type { UpstreamSum } from "./upstreams.ts";
import type { UsageGrouping } from "./usage.ts";
import type { UsageFigures, UsageLine, UsageReport } from "./schemas.ts";

/** Writes a bill as CSV. Every line has the period, so that files of several periods can be concatenated. */
export function usageCsv(report: UsageReport): string {
  const { since, until, lines } = report;
  const header = [
    ...["since", "until"],
    ...groupingsOf(report).flatMap((by) => by === "key" ? ["key", "key_id"] : [by]),
    ...["requests", "failed", ...TOKEN_CLASSES, "images", "cost_usd", "overrun_usd"],
    ...["cache_saved_usd", "currency"],
  ];
  return csvText([header, ...lines.map((line) => [since, until, ...usageNames(line), ...usageCells(line), "USD"])]);
}

/** Returns the groupings of a bill: one or two. */
export function groupingsOf({ by, then_by: thenBy }: Pick<UsageReport, "by" | "then_by">): UsageGrouping[] {
  return thenBy === undefined ? [by] : [by, thenBy];
}

/** Returns the names of a line in the order of the groupings; the id of a key follows its name. */
export function usageNames({ id, name, then_id: thenId, then_name: thenName }: UsageLine): string[] {
  return [name, id, thenName, thenId].filter((text) => text !== undefined);
}

function usageCells({ requests, failed, tokens, images, ...usd }: UsageFigures): string[] {
  const counts = [requests, failed, ...TOKEN_CLASSES.map((name) => tokens[name]), images];
  return [...counts.map(String), usd.cost_usd, usd.overrun_usd, usd.cache_saved_usd];
}

/** Columns of sums by upstream: names, counts, tokens, amounts. */
const UPSTREAM_COLUMNS: readonly string[] = [
  ...["upstream", "model", "day", "requests", "failed", "counted"],
  ...TOKEN_CLASSES,
  ...["images", "unpriced", "upstream_usd", "cost_usd", "margin_usd"],
];

/** Writes sums by upstream, upstream model and day as CSV. */
export function upstreamCsv(sums: readonly UpstreamSum[]): string {
  return csvText([
    UPSTREAM_COLUMNS,
    ...sums.map(({ upstream, model, day, requests, failed, counted, tokens, ...sum }) => [
      ...[upstream, model, dayName(day)],
      ...[requests, failed, counted, ...TOKEN_CLASSES.map((name) => tokens[name])].map(String),
      ...[String(sum.images), String(sum.unpriced)],
      ...[sum.upstreamCost, sum.cost, sum.cost - sum.upstreamCost].map(formatUsd),
    ]),
  ]);
}

/** Returns the rows of a comparison, the header first. They have days if the invoice has days. */
export function comparedRows(lines: readonly ComparedLine[]): string[][] {
  const days = lines.some(({ day }) => day !== null) ? ["day"] : [];
  return [
    [...days, "model", "what", "ours", "invoice", "difference", "within"],
    ...lines.map(({ day, model, what, ours, invoice, difference, within }) => [
      ...(day === null ? [] : [day]),
      ...[model, what, ours, invoice, difference, within ? "yes" : "no"],
    ]),
  ];
}
