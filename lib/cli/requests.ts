/** `requests`: lists requests of the ledger, once or continuously. */
import { csvText } from "../csv.ts";
import { roundUsd } from "../billing/money.ts";
import {
  findRequests,
  REQUEST_COLUMNS,
  requestCells,
  type RequestParts,
  type RequestTexts,
} from "../billing/reports/requests.ts";
import { present } from "../protocols/members.ts";
import type { RequestLine } from "../billing/reports/request_schemas.ts";
import { type Invocation, readFlags, type ReportCommand, UsageError } from "./arguments.ts";
import { withStore } from "./command_store.ts";
import { type Format, formatOf, jsonText, outputFailure, writeErr, writeOut } from "./output.ts";
import { tableText } from "./table.ts";

/** Pause between two reads of new entries, in milliseconds. */
const POLL_MS = 1_000;

/** Parameters of the search that are flags of the same name. */
const FLAGS = [
  ...["since", "until", "key", "group", "model", "upstream", "endpoint", "status", "reason"] as const,
  ...["user", "tag", "sort", "limit", "cursor"] as const,
];

/** Prints the requests that match the flags. @throws {UsageError} if a flag cannot be read */
export function requests({ config, values, switches }: ReportCommand): Promise<number> {
  const format = formatOf(switches);
  const texts = textsOf({ values, switches });
  return withStore(config, async ({ ledger, keys }) => {
    const parts: RequestParts = { ledger, keys, config };
    if (switches.has("follow")) return await follow(parts, texts, format);
    const page = await find(parts, texts);
    if (format === "json") writeOut(jsonText(page));
    else if (format === "csv") writeOut(csvText([REQUEST_COLUMNS, ...page.data.map(requestCells)]));
    else if (page.data.length === 0) writeOut("No requests found.\n");
    else writeOut(tableText([HEADER, ...page.data.map(cells)], { right: RIGHT }));
    if (page.next !== null && format !== "json") writeErr(`There may be more: --cursor ${page.next}\n`);
    return 0;
  });
}

/** Prints requests as they are entered in the ledger, until the process is killed or the reader of its output ends. */
async function follow(parts: RequestParts, texts: RequestTexts, format: Format): Promise<number> {
  const unusable = (["sort", "cursor", "limit"] as const).find((name) => texts[name] !== undefined);
  if (unusable !== undefined) throw new UsageError(`Cannot use --${unusable} together with --follow`);
  let after_seq = String(await parts.ledger.lastSeq());
  // Lines are printed immediately, so a column can become wider but not narrower.
  const widths = HEADER.map(({ length }) => length);
  if (format !== "json") writeOut(format === "csv" ? csvText([REQUEST_COLUMNS]) : tableText([HEADER], { widths }));
  while (outputFailure() === undefined) {
    const { data, last_seq } = await find(parts, { ...texts, after_seq, limit: "1000" });
    if (format === "json") writeOut(data.map((line) => `${JSON.stringify(line)}\n`).join(""));
    else if (format === "csv") writeOut(csvText(data.map(requestCells)));
    else writeOut(tableText(data.map(cells), { right: RIGHT, widths }));
    const isLast = String(last_seq) === after_seq;
    after_seq = String(last_seq);
    if (isLast) await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  return 0;
}

function textsOf({ values, switches }: Pick<Invocation, "values" | "switches">): RequestTexts {
  const texts: RequestTexts = present({ min_cost_usd: values["min-cost"], min_ms: values["min-ms"] });
  for (const name of FLAGS) if (values[name] !== undefined) texts[name] = values[name];
  return switches.has("failed") ? { ...texts, failed: "true" } : texts;
}

function find(parts: RequestParts, texts: RequestTexts) {
  return readFlags(() => findRequests(parts, texts, { now: Date.now() }));
}

/** Titles of the table's columns. */
const HEADER = ["RECEIVED", "KEY", "GROUP", "MODEL", "UPSTREAM", "STATUS", "OUTCOME", "MS", "COST USD", "ID"];
const RIGHT = [HEADER.indexOf("MS"), HEADER.indexOf("COST USD")];

function cells(
  { at, key, group, model, upstream, status, reason, ending, total_ms, cost_usd, id }: RequestLine,
): string[] {
  return [
    ...[at.replace(/\.\d+Z$/, "Z"), key, group, model ?? "-", upstream ?? "-", String(status ?? "-"), reason ?? ending],
    ...[ending === "lost" ? "-" : String(total_ms), roundUsd(cost_usd), id],
  ];
}
