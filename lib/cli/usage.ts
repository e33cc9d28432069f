/** `usage`: shows usage and cost of a period. */
import { createCatalog } from "../catalog/catalog.ts";
import { roundUsd } from "../billing/money.ts";
import { readPeriod } from "../billing/reports/period.ts";
import { readGroupings, usageReport } from "../billing/reports/usage.ts";
import type { UsageFigures, UsageReport } from "../billing/reports/schemas.ts";
import { groupingsOf, usageCsv, usageNames } from "../billing/reports/usage_csv.ts";
import { readUsageFilter } from "../billing/reports/usage_filter.ts";
import { readFlags, type ReportCommand, UsageError } from "./arguments.ts";
import { formatOf, jsonText, writeOut } from "./output.ts";
import { withStore } from "./command_store.ts";
import { tableText } from "./table.ts";
import { reportRangeError, UPSTREAM_FLAGS, upstreamUsage } from "./upstream_usage.ts";

/** Prints the sums of a period, the most expensive first. @throws {UsageError} if a flag is wrong */
export async function usage({ config, values, switches }: ReportCommand): Promise<number> {
  const format = formatOf(switches);
  const { since, until } = values;
  const periodName = namedPeriod({ values, switches });
  const period = await readFlags(() => readPeriod({ since, until, period: periodName }, Date.now()));
  if (values.by === "upstream") {
    // The catalog also has the embedded models, whose targets count as well.
    return await upstreamUsage({ config, models: createCatalog(config).models, values, switches, period });
  }
  const upstreamFlag = UPSTREAM_FLAGS.find((flag) => values[flag] !== undefined);
  if (upstreamFlag !== undefined) throw new UsageError(`Cannot use --${upstreamFlag} without "--by upstream"`);
  const groupings = await readFlags(() => readGroupings(values.by ?? "key"));
  return await withStore(config, async ({ ledger, keys }) => {
    let report: UsageReport;
    try {
      const only = await readUsageFilter(values, { keys, config });
      report = await usageReport({ ledger, keys, config }, { ...period, ...groupings, only });
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      return reportRangeError(error);
    }
    if (format === "json") writeOut(jsonText(report));
    else writeOut(format === "csv" ? usageCsv(report) : table(report, switches.has("exact")));
    return 0;
  });
}

function namedPeriod({ values, switches }: Omit<ReportCommand, "config">): string | undefined {
  const names = [...(["today", "yesterday", "last-month"] as const).filter((name) => switches.has(name))];
  const [period, ...more] = values.month === undefined ? names : [values.month, ...names];
  if (more.length > 0) throw new UsageError("Expected one of --month, --last-month, --today and --yesterday");
  return period;
}

/** Titles of the columns after the names. All of them have numbers. */
const HEADER = [
  "REQUESTS",
  "FAILED",
  "PROMPT",
  "CACHE READ",
  "CACHE WRITE",
  "CACHED",
  "SAVED USD",
  "COMPLETION",
  "IMAGES",
  "COST USD",
  "OVERRUN USD",
];

function table(report: UsageReport, isExact: boolean): string {
  const { since, until, lines, total } = report;
  const usd = isExact ? (text: string) => text : roundUsd;
  const names = groupingsOf(report).flatMap((by) => by === "key" ? ["KEY", "ID"] : [by.toUpperCase()]);
  const rows = [
    [...names, ...HEADER],
    // Requests without a model have no name to show.
    ...lines.map((line) => [...usageNames(line).map((name) => name === "" ? "-" : name), ...tableCells(line, usd)]),
    [...names.map((_, column) => column === 0 ? "TOTAL" : ""), ...tableCells(total, usd)],
  ];
  const right = HEADER.map((_, column) => names.length + column);
  return `From ${shortened(since)} to ${shortened(until)}\n\n${tableText(rows, { right })}`;
}

/** Returns a time without milliseconds if they are zero. */
function shortened(time: string): string {
  return time.replace(".000Z", "Z");
}

function tableCells(
  { requests, failed, tokens, cached_percent: cached, images, ...amounts }: UsageFigures,
  usd: (text: string) => string,
): string[] {
  const written = tokens.input_cache_write_5m + tokens.input_cache_write_1h;
  const input = [requests, failed, tokens.prompt, tokens.input_cache_read, written].map(String);
  const share = cached === null ? "-" : `${cached}%`;
  const { cache_saved_usd, cost_usd, overrun_usd } = amounts;
  return [...input, share, usd(cache_saved_usd), `${tokens.completion}`, `${images}`, usd(cost_usd), usd(overrun_usd)];
}
