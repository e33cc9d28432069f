/** The first page of the console: figures over time, the largest spenders, and current problems. */
import type { VNode } from "preact";
import { listBudgets, usedPercent } from "../billing/reports/budget_report.ts";
import type { BudgetLine } from "../billing/reports/schemas.ts";
import { PrunedEntriesError } from "../billing/reports/report_errors.ts";
import { readLatencies } from "../billing/reports/latencies.ts";
import { readTimeSeries, SERIES_BY, type TimeSeriesQuery } from "../billing/reports/time_series.ts";
import { keyNames } from "../billing/reports/usage.ts";
import type { Gateway } from "../gateway.ts";
import { failureTest, readiness } from "../status/health.ts";
import type { RouteContext } from "../server/router.ts";
import { BudgetOwnerLink } from "./budgets.tsx";
import { Moment, Share, State, Table, Usd } from "./format.tsx";
import { CONSOLE, keyPath, type Page, queryOf, requestsPath, showPage } from "./html.tsx";
import { TargetState } from "./models.tsx";
import { figureCells, OverviewCharts, type OverviewData, wholeSpan } from "./overview_charts.tsx";

const PERIODS = {
  "1h": { text: "1 hour", unit: "minute", length: 1, count: 60 },
  "24h": { text: "24 hours", unit: "hour", length: 1, count: 24 },
  "7d": { text: "7 days", unit: "day", length: 1, count: 7 },
  "30d": { text: "30 days", unit: "day", length: 1, count: 30 },
  "90d": { text: "90 days", unit: "day", length: 1, count: 90 },
  "1y": { text: "1 year", unit: "day", length: 7, count: 52 },
} as const satisfies Record<string, Pick<TimeSeriesQuery, "unit" | "length" | "count"> & { text: string }>;
/** Largest number of models, keys, groups or upstreams that have a color of their own in the charts. */
const MAX_COLORS = 7;
/** Largest number of lines of each list. */
const MAX_LINES = 8;
/** Used share of a budget, in percent, from which it is listed. */
const NEAR_END_PERCENT = 80;

interface Choice {
  period: keyof typeof PERIODS;
  by: TimeSeriesQuery["by"];
}

/** `GET /admin/console`. */
export function overview(request: Request, context: RouteContext): Promise<Response> {
  return showPage(
    context,
    () => overviewPage(readChoice(request), { gateway: context.gateway, signal: request.signal }),
  );
}

/** Reads the choice from the query. The default is seven days, by model. */
function readChoice(request: Pick<Request, "url">): Choice {
  const query = queryOf(request);
  const period = query.get("period") ?? "";
  return {
    period: Object.hasOwn(PERIODS, period) ? period as Choice["period"] : "7d",
    by: SERIES_BY.find((name) => name === query.get("by")) ?? "model",
  };
}

async function overviewPage(
  choice: Choice,
  { gateway, signal }: { gateway: Gateway; signal: AbortSignal },
): Promise<Page> {
  const { store: { ledger, keys }, config, now } = gateway;
  const budgets = await listBudgets({ ledger, keys, config }, { now: now() + 1, signal });
  const { status, message } = await readiness(gateway);
  return {
    title: "Overview",
    body: (
      <>
        <p>
          <State state={status} text={message ?? "no problems"} />
        </p>
        <Choices choice={choice} />
        {await figures(choice, { gateway, signal })}
        <h2>{`Budgets used by ${NEAR_END_PERCENT}% or more`}</h2>
        <NearBudgets budgets={budgets} now={now()} />
        <h2>Upstreams in trouble</h2>
        <TroubledTargets gateway={gateway} />
      </>
    ),
  };
}

function Choices({ choice }: { choice: Choice }): VNode {
  const link = (text: string, other: Choice) => {
    const isShown = other.by === choice.by && other.period === choice.period;
    return (
      <a href={`${CONSOLE}?${new URLSearchParams({ ...other })}`} aria-current={isShown ? "true" : undefined}>{text}</a>
    );
  };
  const periods = Object.keys(PERIODS) as Choice["period"][];
  return (
    <>
      <nav aria-label="Period">
        {periods.map((period) => link(PERIODS[period].text, { ...choice, period }))}
      </nav>
      <nav aria-label="By">{SERIES_BY.map((by) => link(`By ${by}`, { ...choice, by }))}</nav>
    </>
  );
}

/** Makes the charts and tables of the chosen period. */
async function figures(
  { period, by }: Choice,
  { gateway, signal }: { gateway: Gateway; signal: AbortSignal },
): Promise<VNode> {
  try {
    const { unit, length, count } = PERIODS[period];
    const query: TimeSeriesQuery = { now: gateway.now(), unit, length, count, by, limit: MAX_COLORS, signal };
    const data = await readData(query, gateway);
    if (data.series.total.requests === 0) return <NoRequests />;
    return (
      <>
        <OverviewCharts data={data} />
        {by !== "key" && await topSpenders(data, { query, gateway })}
      </>
    );
  } catch (error) {
    if (!(error instanceof PrunedEntriesError)) throw error;
    return <p class="notice">{`${error.message}. Choose another period, or group by model, key or group.`}</p>;
  }
}

/** Shows first steps if there are no requests. */
function NoRequests(): VNode {
  return (
    <p class="empty">
      No requests in this period. Try a model in the <a href={`${CONSOLE}/playground`}>playground</a>, create a{" "}
      <a href={`${CONSOLE}/keys`}>key</a>, or <a href={`${CONSOLE}/connect`}>connect a client</a>.
    </p>
  );
}

async function readData(
  query: TimeSeriesQuery,
  { store: { ledger, keys }, config }: Gateway,
): Promise<OverviewData> {
  const { by, signal } = query;
  const series = await readTimeSeries(ledger, query);
  const steps = series.steps.map((step, index) => ({ ...step, requests: series.totals[index]?.requests ?? 0 }));
  const latencies = await readLatencies(ledger, steps, signal);
  const names = by === "key"
    ? await keyNames({ keys, config }, series.parts.map(({ name }) => name))
    : new Map<string, string>();
  return { by, series, latencies, nameOf: (name) => names.get(name) ?? name };
}

/** Makes the table of the keys with the highest cost. */
async function topSpenders(
  { series }: OverviewData,
  { query, gateway: { store: { ledger, keys }, config } }: { query: TimeSeriesQuery; gateway: Gateway },
): Promise<VNode> {
  const { parts } = await readTimeSeries(ledger, { ...query, by: "key", limit: MAX_LINES });
  const names = await keyNames({ keys, config }, parts.map(({ name }) => name));
  const span = wholeSpan(series);
  return (
    <>
      <h2>Top spenders</h2>
      <Table
        columns={["Key", "#Cost", "#Requests", "#Failed or refused", "#Input", "#Output"]}
        rows={parts.map(({ name: id, total }) => [
          <a href={keyPath(id)}>{names.get(id) ?? id}</a>,
          ...figureCells(total, { ...span, key: id }),
        ])}
        empty="No requests in this period."
      />
    </>
  );
}

function NearBudgets({ budgets, now }: { budgets: readonly BudgetLine[]; now: number }): VNode {
  const near = budgets.map((line) => ({ line, percent: usedPercent(line) }))
    .filter(({ percent }) => percent >= NEAR_END_PERCENT)
    .sort((a, b) => b.percent - a.percent);
  return (
    <Table
      columns={["Budget of", "Used", "#Left", "Resets"]}
      rows={near.slice(0, MAX_LINES).map(({ line, percent }) => [
        <BudgetOwnerLink line={line} now={now} />,
        <Share percent={percent} of={`Used part of the budget of ${line.name}`} />,
        <Usd usd={line.left_usd} />,
        <Moment iso={line.resets_at} />,
      ])}
      empty="None."
    />
  );
}

function TroubledTargets({ gateway }: { gateway: Gateway }): VNode {
  return (
    <Table
      columns={["Upstream", "Model", "State", "#Answered of last attempts"]}
      rows={gateway.health.snapshot().filter(failureTest(gateway.config.routing.breaker)).map((row) => [
        <a href={requestsPath({ upstream: row.upstream })}>{row.upstream}</a>,
        row.model,
        <TargetState state={row.state} isFailing />,
        `${row.recent_answers} of ${row.recent_attempts}`,
      ])}
      empty="None."
    />
  );
}
