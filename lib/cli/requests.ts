/** `requests`: single requests of the ledger, once or continuously. */
import type { Config } from "../config.ts";
import { csvText } from "../csv.ts";
import { roundUsd } from "../billing/money.ts";
import {
  findRequests,
  REQUEST_COLUMNS,
  requestCells,
  type RequestLine,
  type RequestParts,
  RequestQueryError,
  type RequestTexts,
} from "../billing/reports/requests.ts";
import { type Invocation, UsageError } from "./arguments.ts";
import { withStore } from "./command_store.ts";
import { writeErr, writeOut } from "./output.ts";
import { tableText } from "./table.ts";

/** Pause between two looks for new requests, in milliseconds. */
const FOLLOW_MS = 1_000;

/** Flags, and their parameters of a search. */
const PARAMETERS = {
  since: "since",
  until: "until",
  key: "key",
  group: "group",
  model: "model",
  upstream: "upstream",
  endpoint: "endpoint",
  status: "status",
  reason: "reason",
  user: "user",
  tag: "tag",
  "min-cost": "min_cost_usd",
  "min-ms": "min_ms",
  sort: "sort",
  limit: "limit",
  cursor: "cursor",
} as const satisfies Partial<Record<keyof Invocation["values"], keyof RequestTexts>>;

/** Prints requests. @throws {UsageError} where a flag cannot be read */
export function requests(
  { config, values, switches }: Pick<Invocation, "values" | "switches"> & { config: Config },
): Promise<number> {
  if (switches.has("json") && switches.has("csv")) throw new UsageError("Expected --json or --csv, not both");
  const texts = textsOf({ values, switches });
  return withStore(config, async ({ ledger, keys }) => {
    const parts: RequestParts = { ledger, keys, config };
    if (switches.has("follow")) return await follow(parts, texts, switches);
    const page = await find(parts, texts);
    if (switches.has("json")) writeOut(`${JSON.stringify(page, null, 2)}\n`);
    else if (switches.has("csv")) writeOut(csvText([REQUEST_COLUMNS, ...page.data.map(requestCells)]));
    else writeOut(page.data.length === 0 ? "No requests found.\n" : tableText(rowsOf(page.data), { right: RIGHT }));
    if (page.next !== null && !switches.has("json")) writeErr(`There may be more: --cursor ${page.next}\n`);
    return 0;
  });
}

/** Prints requests as they are entered, until the process is ended. */
async function follow(parts: RequestParts, texts: RequestTexts, switches: Invocation["switches"]): Promise<never> {
  const unusable = (["sort", "cursor", "limit"] as const).find((name) => texts[name] !== undefined);
  if (unusable !== undefined) throw new UsageError(`Cannot use --${unusable} together with --follow`);
  let after_seq = String(await parts.ledger.lastSeq());
  const isTable = !switches.has("json") && !switches.has("csv");
  if (switches.has("csv")) writeOut(csvText([REQUEST_COLUMNS]));
  // Columns only grow, as each line is printed at once.
  const widths = HEADER.map(({ length }) => length);
  if (isTable) writeOut(widened([HEADER], widths));
  for (;;) {
    const { data, last_seq } = await find(parts, { ...texts, after_seq, limit: "1000" });
    if (switches.has("json")) { for (const line of data) writeOut(`${JSON.stringify(line)}\n`); }
    else if (switches.has("csv")) writeOut(csvText(data.map(requestCells)));
    else writeOut(widened(data.map(cells), widths));
    const isLast = String(last_seq) === after_seq;
    after_seq = String(last_seq);
    if (isLast) await new Promise((resolve) => setTimeout(resolve, FOLLOW_MS));
  }
}

function widened(rows: readonly (readonly string[])[], widths: number[]): string {
  for (const row of rows) row.forEach((cell, at) => widths[at] = Math.max(widths[at] ?? 0, cell.length));
  return rows.map((row) =>
    `${
      row.map((cell, at) => RIGHT.includes(at) ? cell.padStart(widths[at] ?? 0) : cell.padEnd(widths[at] ?? 0)).join(
        "  ",
      ).trimEnd()
    }\n`
  ).join("");
}

function textsOf({ values, switches }: Pick<Invocation, "values" | "switches">): RequestTexts {
  const texts: RequestTexts = {};
  for (const [flag, name] of Object.entries(PARAMETERS)) {
    const text = values[flag as keyof typeof PARAMETERS];
    if (text !== undefined) texts[name] = text;
  }
  return switches.has("failed") ? { ...texts, failed: "true" } : texts;
}

async function find(parts: RequestParts, texts: RequestTexts) {
  try {
    return await findRequests(parts, texts, { now: Date.now() });
  } catch (error) {
    if (error instanceof RequestQueryError) throw new UsageError(error.message, { cause: error });
    throw error;
  }
}

const HEADER = ["CAME IN", "KEY", "GROUP", "MODEL", "UPSTREAM", "STATUS", "OUTCOME", "MS", "COST USD", "ID"];
const RIGHT = [HEADER.indexOf("MS"), HEADER.indexOf("COST USD")];

function rowsOf(lines: readonly RequestLine[]): string[][] {
  return [HEADER, ...lines.map(cells)];
}

function cells(
  { at, key, group, model, upstream, status, reason, ending, total_ms, cost_usd, id }: RequestLine,
): string[] {
  return [
    ...[at.replace(/\.\d+Z$/, "Z"), key, group, model ?? "-", upstream ?? "-", String(status ?? "-"), reason ?? ending],
    ...[String(total_ms), roundUsd(cost_usd), id],
  ];
}
