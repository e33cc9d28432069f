/** `usage --by upstream`: shows requests and costs at upstreams, or compares them with an invoice. */
import { messageOf } from "../errors.ts";
import { type Factor, formatUsd, roundUsd } from "../billing/money.ts";
import {
  type ComparedLine,
  compareInvoice,
  comparisonText,
  type Invoice,
  readInvoice,
  readTolerance,
  readUpstreamPrices,
  requireDays,
} from "../billing/reports/invoice.ts";
import { PrunedEntriesError, ReportQueryError } from "../billing/reports/report_errors.ts";
import type { Period } from "../billing/reports/period.ts";
import { upstreamReport } from "../billing/reports/upstream_report.ts";
import { sumUpstreams, totalOf, type UpstreamFigures, type UpstreamSum } from "../billing/reports/upstreams.ts";
import { comparedRows, upstreamCsv } from "../billing/reports/usage_csv.ts";
import { readUsageFilter } from "../billing/reports/usage_filter.ts";
import { csvText } from "../csv.ts";
import { dayName } from "../store/days.ts";
import { readFlags, type ReportCommand, UsageError } from "./arguments.ts";
import { counted, type Format, formatOf, jsonText, writeErr, writeOut } from "./output.ts";
import { withStore } from "./command_store.ts";
import { tableText } from "./table.ts";

/** Flags that need `--by upstream`. */
export const UPSTREAM_FLAGS = ["upstream", "invoice", "prices", "tolerance"] as const;

interface UpstreamCommand extends ReportCommand {
  models: Parameters<typeof sumUpstreams>[0]["config"]["models"];
  period: Period;
}

interface Comparison {
  invoice: Invoice;
  tolerance: Factor;
}

/**
 * Prints the requests of each upstream by model and day, or compares them with an invoice. Returns the exit code: 1 if a
 * number differs by more than the tolerance.
 * @throws {UsageError} if flags contradict each other or a file is invalid
 */
export async function upstreamUsage(
  { config, models, values, switches, period }: UpstreamCommand,
): Promise<number> {
  const { upstream } = values;
  const format = formatOf(switches);
  const comparison = await comparisonOf(values, period);
  const prices = await read(values.prices, readUpstreamPrices);
  return await withStore(config, async ({ ledger, keys }) => {
    let sums: UpstreamSum[];
    try {
      const only = await readUsageFilter(values, { keys, config });
      sums = await sumUpstreams({ ledger, config: { ...config, models } }, { ...period, only, upstream, prices });
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      return reportRangeError(error);
    }
    if (comparison === undefined) {
      const usd = switches.has("exact") ? formatUsd : (amount: bigint) => roundUsd(formatUsd(amount));
      writeOut(await sumsText(sums, { format, period, usd }));
      return 0;
    }
    const lines = compareInvoice(sums, comparison);
    const ok = lines.every(({ within }) => within);
    writeOut(comparedText(lines, { format, sums, ok }));
    return ok ? 0 : 1;
  });
}

/**
 * Prints why a report cannot be made, and returns the exit code.
 * @throws {UsageError} if a flag names something that does not exist
 */
export function reportRangeError(error: RangeError): number {
  if (error instanceof ReportQueryError) throw new UsageError(error.message, { cause: error });
  writeErr(
    error instanceof PrunedEntriesError ? `${error.message}; ask with --since ${error.from}\n` : `${error.message}\n`,
  );
  return 1;
}

async function comparisonOf(values: UpstreamCommand["values"], period: Period): Promise<Comparison | undefined> {
  const invoice = await read(values.invoice, readInvoice);
  const tolerance = await readFlags(() => readTolerance(values.tolerance ?? "0%"));
  if (invoice === undefined) {
    if (values.tolerance !== undefined) throw new UsageError("Cannot use --tolerance without --invoice");
    return undefined;
  }
  const filter = (["key", "group", "model", "user", "tag"] as const).find((flag) => values[flag] !== undefined);
  if (filter !== undefined) {
    throw new UsageError(`Cannot use --${filter} with --invoice: an invoice covers all requests`);
  }
  if (values.upstream === undefined) {
    throw new UsageError("Cannot use --invoice without --upstream, the name of the upstream that sent it");
  }
  await readFlags(() => requireDays(invoice, period));
  return { invoice, tolerance };
}

/** Reads and parses a file; `undefined` without a path. @throws {UsageError} if the file cannot be read or parsed */
async function read<Parsed>(path: string | undefined, parse: (text: string) => Parsed): Promise<Parsed | undefined> {
  if (path === undefined) return undefined;
  let text: string;
  try {
    text = await Deno.readTextFile(path);
  } catch (error) {
    throw new UsageError(`Cannot read "${path}": ${messageOf(error)}`, { cause: error });
  }
  return await readFlags(() => parse(text));
}

async function sumsText(
  sums: readonly UpstreamSum[],
  { format, period, usd }: { format: Format; period: Period; usd: (amount: bigint) => string },
): Promise<string> {
  if (format === "json") return jsonText(await upstreamReport(sums, period));
  if (format === "csv") return upstreamCsv(sums);
  const titles = [
    ...["UPSTREAM", "MODEL", "DAY", "REQUESTS", "FAILED", "COUNTED", "PROMPT", "CACHE READ", "CACHE WRITE"],
    ...["COMPLETION", "IMAGES", "UNPRICED", "UPSTREAM USD", "COST USD", "MARGIN USD"],
  ];
  const rows = [
    titles,
    ...sums.map((sum) => [sum.upstream, sum.model, dayName(sum.day), ...figureCells(sum, usd)]),
    ["TOTAL", "", "", ...figureCells(totalOf(sums), usd)],
  ];
  return tableText(rows, { right: titles.map((_, column) => column).slice(3) });
}

function figureCells(
  { requests, failed, counted, tokens, images, unpriced, upstreamCost, cost }: UpstreamFigures,
  usd: (amount: bigint) => string,
): string[] {
  const written = tokens.input_cache_write_5m + tokens.input_cache_write_1h;
  const counts = [requests, failed, counted, tokens.prompt, tokens.input_cache_read, written, tokens.completion];
  return [...[...counts, images, unpriced].map(String), ...[upstreamCost, cost, cost - upstreamCost].map(usd)];
}

/** Formats all compared numbers, and the counts that cannot be compared. */
function comparedText(
  lines: readonly ComparedLine[],
  { format, sums, ok }: { format: Format; sums: readonly UpstreamSum[]; ok: boolean },
): string {
  const { counted: ownCounts, failed, attempts, requests } = totalOf(sums);
  const unverified = { counted: ownCounts, failed, other_attempts: attempts - requests };
  if (format === "json") return jsonText({ ok, lines, unverified });
  if (format === "csv") return csvText(comparedRows(lines));
  const [header = [], ...cells] = comparedRows(lines);
  const first = header.indexOf("ours");
  const table = tableText([header.map((name) => name.toUpperCase()), ...cells], {
    right: [0, 1, 2].map((at) => first + at),
  });
  return `${table}
${comparisonText(lines)}
Token counts: ${
    counted(unverified.counted, "request")
  } counted by the gateway, ${unverified.failed} failed without reported \
tokens, ${counted(unverified.other_attempts, "earlier attempt")} at this or other upstreams
`;
}
