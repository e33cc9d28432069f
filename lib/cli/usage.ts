/** `usage`: the bill of a period. */
import type { Config } from "../config.ts";
import { type Period, readPeriod } from "../billing/reports/period.ts";
import {
  USAGE_BY,
  type UsageFigures,
  type UsageLine,
  type UsageReport,
  usageReport,
} from "../billing/reports/usage.ts";
import { TOKEN_CLASSES } from "../store/days.ts";
import type { UsageBy } from "../store/ledger.ts";
import { type Invocation, UsageError } from "./arguments.ts";
import { writeOut } from "./output.ts";
import { withStore } from "./command_store.ts";
import { csvText, tableText } from "./table.ts";
import { UPSTREAM_FLAGS, upstreamUsage } from "./upstream_usage.ts";

/** Options of the command. */
type UsageCommand = Pick<Invocation, "values" | "switches"> & { config: Config };

/** Prints the sums of a period, the dearest first. @throws {UsageError} where the period or `by` is none */
export function usage({ config, values, switches }: UsageCommand): Promise<number> {
  if (switches.has("json") && switches.has("csv")) throw new UsageError("Expected --json or --csv, not both");
  const period = periodOf(values);
  if (values.by === "upstream") return upstreamUsage({ config, values, switches, period });
  const alone = UPSTREAM_FLAGS.find((flag) => values[flag] !== undefined);
  if (alone !== undefined) throw new UsageError(`Cannot use --${alone} without "--by upstream"`);
  const query = { ...period, by: byOf(values.by ?? "key") };
  return withStore(config, async ({ ledger, keys }) => {
    const report = await usageReport({ ledger, keys, config }, query);
    if (switches.has("json")) writeOut(`${JSON.stringify(report, null, 2)}\n`);
    else writeOut(switches.has("csv") ? csv(report) : table(report));
    return 0;
  });
}

function periodOf(typed: { since?: string; until?: string }): Period {
  try {
    return readPeriod(typed, Date.now());
  } catch (error) {
    if (error instanceof RangeError) throw new UsageError(error.message, { cause: error });
    throw error;
  }
}

function byOf(text: string): UsageBy {
  const by = USAGE_BY.find((name) => name === text);
  if (by === undefined) throw new UsageError(`Cannot sum up by "${text}"; known: ${USAGE_BY.join(", ")}, upstream`);
  return by;
}

/** Columns of the table after the name; all but the name are numbers. */
const HEADER = [
  "REQUESTS",
  "FAILED",
  "PROMPT",
  "CACHE READ",
  "CACHE WRITE",
  "COMPLETION",
  "IMAGES",
  "COST USD",
  "OVERRUN USD",
];

function table({ since, until, by, lines, total }: UsageReport): string {
  const names = by === "key" ? ["KEY", "ID"] : [by.toUpperCase()];
  const rows = [
    [...names, ...HEADER],
    // Requests without a model have no name to show.
    ...lines.map((line) => [...nameCells(line).map((name) => name === "" ? "-" : name), ...tableCells(line)]),
    [...names.map((_, column) => column === 0 ? "TOTAL" : ""), ...tableCells(total)],
  ];
  const right = HEADER.map((_, column) => names.length + column);
  return `From ${shortened(since)} to ${shortened(until)}\n\n${tableText(rows, { right })}`;
}

/** A time with milliseconds only where they are not zero. */
function shortened(moment: string): string {
  return moment.replace(".000Z", "Z");
}

function tableCells({ requests, failed, tokens, images, cost_usd, overrun_usd }: UsageFigures): string[] {
  const written = tokens.input_cache_write_5m + tokens.input_cache_write_1h;
  const counts = [requests, failed, tokens.prompt, tokens.input_cache_read, written, tokens.completion, images];
  return [...counts.map(String), cost_usd, overrun_usd];
}

function csv({ by, lines }: UsageReport): string {
  const header = [
    ...(by === "key" ? ["key", "key_id"] : [by]),
    "requests",
    "failed",
    ...TOKEN_CLASSES,
    "images",
    "cost_usd",
    "overrun_usd",
  ];
  return csvText([header, ...lines.map((line) => [...nameCells(line), ...csvCells(line)])]);
}

function csvCells({ requests, failed, tokens, images, cost_usd, overrun_usd }: UsageFigures): string[] {
  const counts = [requests, failed, ...TOKEN_CLASSES.map((name) => tokens[name]), images];
  return [...counts.map(String), cost_usd, overrun_usd];
}

function nameCells({ id, name }: UsageLine): string[] {
  return id === undefined ? [name] : [name, id];
}
