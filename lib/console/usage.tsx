/** The page and the CSV file with usage and cost of a month, by one or two groupings. */
import type { VNode } from "preact";
import { runReport } from "../admin/request_input.ts";
import type { RequestTexts } from "../billing/reports/requests.ts";
import { type UsageGrouping, usageReport } from "../billing/reports/usage.ts";
import type { UsageFigures, UsageLine } from "../billing/reports/schemas.ts";
import { groupingsOf, usageCsv } from "../billing/reports/usage_csv.ts";
import type { RouteContext } from "../server/router.ts";
import { DAY_MS } from "../store/days.ts";
import { inputTokensOf } from "../store/ledger.ts";
import { DayChart } from "./chart.tsx";
import { Cards, Count, Table, Usd } from "./format.tsx";
import { csvResponse, type Page, queryOf, requestsPath, showPage } from "./html.tsx";
import { upstreamUsage } from "./upstream_usage.tsx";
import { ChoiceForm, CsvLink, readChoice, TITLES, UPSTREAM, type UsageChoice } from "./usage_choice.tsx";

/** Largest number of lines that the page shows. The file has all of them. */
const MAX_LINES = 250;

/** `GET /admin/console/usage`: the page, or with `format=csv` the file. */
export function usagePage(request: Request, context: RouteContext): Promise<Response> {
  return showPage(context, async (session) => {
    const choice = readChoice(queryOf(request), context.gateway.now());
    const { by } = choice;
    const { signal } = request;
    return by === UPSTREAM
      ? await upstreamUsage(choice, { session, signal, context })
      : await billPage({ ...choice, by }, { signal, context });
  });
}

async function billPage(
  choice: UsageChoice & { by: UsageGrouping },
  { signal, context }: { signal: AbortSignal; context: RouteContext },
): Promise<Page | Response> {
  const { month, period, by, thenBy, isCsv } = choice;
  const { store, config } = context.gateway;
  const parts = { ledger: store.ledger, keys: store.keys, config };
  const groupings = { by, ...(thenBy !== undefined && { thenBy }) };
  const report = await runReport(() => usageReport(parts, { ...period, ...groupings, signal }), "month");
  if (isCsv) return csvResponse(usageCsv(report), `usage-${month}-${groupingsOf(report).join("-")}`);
  const days = await usageReport(parts, { ...period, by: "day", signal });
  const names = groupingsOf(report).map((by) => TITLES[by]);
  const hasOverrun = report.total.overrun_usd !== "0";
  const figures = (of: UsageFigures) => figureCells(of).slice(0, hasOverrun ? undefined : -1);
  return {
    title: "Usage",
    body: (
      <>
        <ChoiceForm choice={choice} />
        <Totals total={report.total} />
        <DayChart days={days.lines} {...period} />
        <h2>{`By ${names.join(" and ").toLowerCase()}`}</h2>
        <Table
          columns={[...names, ...NUMBER_COLUMNS.slice(0, hasOverrun ? undefined : -1)]}
          rows={report.lines.slice(0, MAX_LINES).map((line) => [...nameCells(line, choice), ...figures(line)])}
          total={["Total", ...names.slice(1).map(() => ""), ...figures(report.total)]}
          empty="No requests in this month."
        />
        {report.lines.length > MAX_LINES && (
          <p class="dim">
            {`The first ${MAX_LINES} of ${report.lines.length} lines; the file has all of them.`}
          </p>
        )}
        <CsvLink choice={choice} />
        {groupingsOf(report).includes("tag") && (
          <p class="dim">A request with several tags is in the line of each; the total has it once.</p>
        )}
      </>
    ),
  };
}

/** Titles of the columns with numbers. The last is shown only if there is an overrun. */
const NUMBER_COLUMNS = [
  "#Cost",
  "#Requests",
  "#Failed",
  "#Input",
  "#From cache",
  "#Saved by caches",
  "#Output",
  "#Images",
  "#Overrun",
] as const;

function figureCells({ tokens, ...figures }: UsageFigures): VNode[] {
  return [
    <Usd usd={figures.cost_usd} />,
    <Count value={figures.requests} />,
    <Count value={figures.failed} />,
    <Count value={inputTokensOf(tokens)} />,
    <>{figures.cached_percent === null ? "–" : `${figures.cached_percent}%`}</>,
    <Usd usd={figures.cache_saved_usd} />,
    <Count value={tokens.completion} />,
    <Count value={figures.images} />,
    <Usd usd={figures.overrun_usd} />,
  ];
}

/** Returns cells with the names of a line, each with a link to its requests. */
function nameCells(
  { id, name, then_id: thenId, then_name: thenName }: UsageLine,
  { by, thenBy, period }: UsageChoice & { by: UsageGrouping },
): (VNode | string)[] {
  const first = filterOf(by, id ?? name);
  const wholePeriod = { since: new Date(period.since).toISOString(), until: new Date(period.until).toISOString() };
  const link = (name: string, filter: RequestTexts | undefined) => {
    if (name === "") return "–";
    return filter === undefined ? name : <a href={requestsPath({ ...wholePeriod, ...filter })}>{name}</a>;
  };
  if (thenBy === undefined || thenName === undefined) return [link(name, first)];
  const second = filterOf(thenBy, thenId ?? thenName);
  const both = first === undefined || second === undefined ? undefined : { ...first, ...second };
  return [link(name, first), link(thenName, both)];
}

/** Returns the filter for the requests of a line; `undefined` for a line without a name, which no filter matches. */
function filterOf(by: UsageGrouping, name: string): RequestTexts | undefined {
  if (name === "") return undefined;
  if (by !== "day") return { [by]: name };
  const since = Date.parse(name);
  return { since: new Date(since).toISOString(), until: new Date(since + DAY_MS).toISOString() };
}

function Totals({ total: { tokens, ...total } }: { total: UsageFigures }): VNode {
  return (
    <Cards
      cards={[
        ["Cost", <Usd usd={total.cost_usd} />],
        ["Requests", <Count value={total.requests} />],
        ["Failed or refused", <Count value={total.failed} />],
        ["Input tokens", <Count value={inputTokensOf(tokens)} />],
        ["Saved by prompt caches", <Usd usd={total.cache_saved_usd} />],
        ["Output tokens", <Count value={tokens.completion} />],
        ["Images", <Count value={total.images} />],
      ]}
    />
  );
}
