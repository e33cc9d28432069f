/** The charts of the overview, and tables with the same figures. */
import type { VNode } from "preact";
import { formatUsd } from "../billing/money.ts";
import type { Latencies, LatencySeries } from "../billing/reports/latencies.ts";
import type { Period } from "../billing/reports/period.ts";
import type { RequestTexts } from "../billing/reports/requests.ts";
import type { TimeSeries, TimeSeriesQuery } from "../billing/reports/time_series.ts";
import type { SumFigures } from "../store/ledger.ts";
import { inputTokensOf } from "../store/ledger.ts";
import { grouped } from "../text.ts";
import { BarChart, type ChartStep, countTick, LineChart, millisecondsTick, usdNumber, usdTick } from "./chart.tsx";
import { Cards, Count, Moment, Table, Usd } from "./format.tsx";
import { requestsPath } from "./html.tsx";

/** Figures of a period. */
export interface OverviewData {
  by: TimeSeriesQuery["by"];
  series: TimeSeries;
  latencies: LatencySeries;
  /** Returns the display name of a part: the name of a key for its id. */
  nameOf: (name: string) => string;
}

/** The bar charts: title, value of a step, and format of the axis. */
const BAR_CHARTS = [
  { title: "Cost", valueOf: ({ cost }: SumFigures) => usdNumber(cost), format: usdTick },
  { title: "Requests", valueOf: ({ requests }: SumFigures) => requests, format: countTick },
  { title: "Tokens", valueOf: tokensOf, format: countTick },
  { title: "Failed or refused", valueOf: ({ failed }: SumFigures) => failed, format: countTick },
] as const;

/** Shows the totals, charts and tables of the period. */
export function OverviewCharts({ data }: { data: OverviewData }): VNode {
  const { by, series, latencies, nameOf } = data;
  const { parts, others, total } = series;
  const period = wholeSpan(series);
  const colored = [...parts, ...others === undefined ? [] : [others]]
    .map((part) =>
      part === others
        ? { ...part, class: "others", label: "all others" }
        : { ...part, class: `p${parts.indexOf(part)}`, label: nameOf(part.name) || "none" }
    );
  return (
    <>
      <Totals total={total} latencies={latencies.all} span={period} />
      <ul class="legend" aria-label={`Colors of the charts, by ${by}`}>
        {colored.map(({ class: color, label }) => (
          <li>
            <span class={`swatch ${color}`} /> {label}
          </li>
        ))}
      </ul>
      <div class="charts">
        {BAR_CHARTS.map(({ title, valueOf, format }) => (
          <figure>
            <figcaption>{title}</figcaption>
            <BarChart
              label={`${title} over time, by ${by}`}
              steps={stepsOf(series, (index) => stepText(series.totals[index], { title, valueOf, format }))}
              parts={colored.map((part) => ({ class: part.class, values: part.steps.map(valueOf) }))}
              format={format}
            />
          </figure>
        ))}
        {(["first", "total"] as const).map((kind) => <LatencyChart kind={kind} data={data} />)}
      </div>
      <p class="dim">{latencyText(latencies)}</p>
      <h2>{`By ${by}`}</h2>
      <Table
        columns={["Name", "#Cost", "#Requests", "#Failed or refused", "#Input", "#Output"]}
        rows={colored.map(({ name, class: color, label, total }) => [
          <>
            <span class={`swatch ${color}`} /> {label}
          </>,
          ...figureCells(total, color === "others" || name === "" ? undefined : { ...period, [by]: name }),
        ])}
        empty="No requests in this period."
      />
      <StepTable data={data} />
    </>
  );
}

function Totals(
  { total, latencies, span }: { total: SumFigures; latencies: Latencies; span: RequestTexts },
): VNode {
  const link = (value: VNode, more: RequestTexts = {}) => <a href={requestsPath({ ...span, ...more })}>{value}</a>;
  const { first, total: wholeAnswer } = latencies;
  return (
    <Cards
      cards={[
        ["Cost", link(<Usd usd={formatUsd(total.cost)} />, { sort: "cost" })],
        ["Requests", link(<Count value={total.requests} />)],
        ["Failed or refused", link(<Count value={total.failed} />, { failed: "true" })],
        ["Input tokens", link(<Count value={inputTokensOf(total.tokens)} />)],
        ["Output tokens", link(<Count value={total.tokens.completion} />)],
        ["Images", link(<Count value={total.images} />)],
        ["First token, p50 / p95", link(<>{quantilesText(first)}</>)],
        ["Whole answer, p50 / p95", link(<>{quantilesText(wholeAnswer)}</>, { sort: "duration" })],
      ]}
    />
  );
}

function LatencyChart({ kind, data }: { kind: "first" | "total"; data: OverviewData }): VNode {
  const title = kind === "first" ? "Time to the first token" : "Time to the end of the answer";
  const lines = (["p95", "p50"] as const).map((name) => ({
    class: name,
    values: data.latencies.steps.map((step) => step[kind]?.[name]),
  }));
  return (
    <figure>
      <figcaption>
        {`${title}: `}
        <span class="swatch p50" /> p50 <span class="swatch p95" /> p95
      </figcaption>
      <LineChart
        label={`${title}, p50 and p95`}
        steps={stepsOf(data.series, (index) => `${quantilesText(data.latencies.steps[index]?.[kind])} (p50 / p95)`)}
        lines={lines}
        format={millisecondsTick}
      />
    </figure>
  );
}

/** Returns the steps of a chart, each with a text and a link to its requests. */
function stepsOf({ steps }: TimeSeries, textOf: (index: number) => string): ChartStep[] {
  return steps.map((step, index) => ({
    since: step.since,
    href: requestsPath(spanOf(step)),
    title: `${new Date(step.since).toISOString().slice(0, 16).replace("T", " ")} UTC: ${textOf(index)}`,
  }));
}

function stepText(figures: SumFigures | undefined, { title, valueOf, format }: typeof BAR_CHARTS[number]): string {
  return `${title} ${figures === undefined ? "–" : format(valueOf(figures))}`;
}

/** Shows the figures of the charts as a table. */
function StepTable({ data: { series: { steps, totals }, latencies } }: { data: OverviewData }): VNode {
  const rows = steps.flatMap((step, index) => {
    const figures = totals[index];
    if (figures === undefined || figures.requests === 0) return [];
    const { first, total } = latencies.steps[index] ?? {};
    return [[
      <Moment iso={new Date(step.since).toISOString()} />,
      ...figureCells(figures, spanOf(step)),
      quantilesText(first),
      quantilesText(total),
    ]];
  });
  return (
    <details>
      <summary>The charts as a table</summary>
      <Table
        columns={[
          ...["From", "#Cost", "#Requests", "#Failed or refused", "#Input", "#Output"],
          ...["#First token, p50 / p95", "#Whole answer, p50 / p95"],
        ]}
        rows={rows}
        empty="No requests in this period."
      />
    </details>
  );
}

/**
 * Returns cells with cost, requests, failures and tokens, each with a link to the requests behind it.
 * @param filters filters of the linked requests; `undefined`: no links
 */
export function figureCells(
  figures: Pick<SumFigures, "cost" | "requests" | "failed" | "tokens">,
  filters: RequestTexts | undefined,
): VNode[] {
  const link = (value: VNode, more: RequestTexts = {}) =>
    filters === undefined ? value : <a href={requestsPath({ ...filters, ...more })}>{value}</a>;
  return [
    link(<Usd usd={formatUsd(figures.cost)} />, { sort: "cost" }),
    link(<Count value={figures.requests} />),
    link(<Count value={figures.failed} />, { failed: "true" }),
    link(<Count value={inputTokensOf(figures.tokens)} />),
    link(<Count value={figures.tokens.completion} />),
  ];
}

/** Returns the start and end of a time series, as filters of requests. */
export function wholeSpan({ steps }: TimeSeries): { since: string; until: string } {
  return spanOf({ since: steps[0]?.since ?? 0, until: steps.at(-1)?.until ?? 0 });
}

function spanOf({ since, until }: Period): { since: string; until: string } {
  return { since: new Date(since).toISOString(), until: new Date(until).toISOString() };
}

function tokensOf(figures: SumFigures): number {
  return inputTokensOf(figures.tokens) + figures.tokens.completion;
}

function quantilesText(quantiles: Latencies["first"]): string {
  if (quantiles === undefined) return "–";
  return `${millisecondsTick(quantiles.p50)} / ${millisecondsTick(quantiles.p95)}`;
}

function latencyText({ read, isWhole }: LatencySeries): string {
  const rule = "Latencies are of answered requests: half of them took at most p50, 95 of 100 at most p95.";
  if (isWhole) return `${rule} All ${grouped(read)} requests of the period were read.`;
  return `${rule} They are of a sample of ${
    grouped(read)
  } requests, spread evenly over the period; in the totals each ` +
    "bar counts as often as it has requests.";
}
