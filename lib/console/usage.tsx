/** The bill of a month by one or two things, as a page and as CSV. */
import type { VNode } from "preact";
import type { RequestTexts } from "../billing/reports/requests.ts";
import { type UsageGrouping, usageReport } from "../billing/reports/usage.ts";
import type { UsageFigures, UsageLine } from "../billing/reports/schemas.ts";
import { groupingsOf, usageCsv } from "../billing/reports/usage_csv.ts";
import type { RouteContext } from "../server/router.ts";
import { DAY_MS } from "../store/days.ts";
import { DayChart } from "./chart.tsx";
import { Cards, Count, inputOf, Table, Usd } from "./format.tsx";
import { csvResponse, type Page, queryOf, requestsPath, showPage } from "./html.tsx";
import { upstreamUsage } from "./upstream_usage.tsx";
import { ChoiceForm, CsvLink, readChoice, TITLES, UPSTREAM, type UsageChoice } from "./usage_choice.tsx";

/** Lines that the page shows; the file has all. */
const MAX_LINES = 250;

/** `GET /admin/console/usage`; with `format=csv` as a file. */
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
  const report = await usageReport(parts, { ...period, ...groupings, signal });
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
          columns={[...names, ...FIGURES.slice(0, hasOverrun ? undefined : -1)]}
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

const FIGURES = [
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
    <Count value={inputOf(tokens)} />,
    <>{figures.cached_percent === null ? "–" : `${figures.cached_percent}%`}</>,
    <Usd usd={figures.cache_saved_usd} />,
    <Count value={tokens.completion} />,
    <Count value={figures.images} />,
    <Usd usd={figures.overrun_usd} />,
  ];
}

/** The names of a line, each with a link to its requests. */
function nameCells(
  { id, name, then_id: thenId, then_name: thenName }: UsageLine,
  { by, thenBy, period }: UsageChoice & { by: UsageGrouping },
): (VNode | string)[] {
  const first = filterOf(by, id ?? name);
  const range = { since: new Date(period.since).toISOString(), until: new Date(period.until).toISOString() };
  const link = (name: string, filter: RequestTexts | undefined) =>
    name === "" ? "–" : filter === undefined ? name : <a href={requestsPath({ ...range, ...filter })}>{name}</a>;
  if (thenBy === undefined || thenName === undefined) return [link(name, first)];
  const second = filterOf(thenBy, thenId ?? thenName);
  const both = first === undefined || second === undefined ? undefined : { ...first, ...second };
  return [link(name, first), link(thenName, both)];
}

/** The search for the requests of a line; absent: requests without a name cannot be searched for. */
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
        ["Input tokens", <Count value={inputOf(tokens)} />],
        ["Saved by prompt caches", <Usd usd={total.cache_saved_usd} />],
        ["Output tokens", <Count value={tokens.completion} />],
        ["Images", <Count value={total.images} />],
      ]}
    />
  );
}
