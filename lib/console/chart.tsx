/** Charts of the console, drawn as SVG on the server. */
import { scaleBand, scaleLinear } from "d3-scale";
import { line, stack } from "d3-shape";
import type { ComponentChildren, VNode } from "preact";
import { formatUsd, parseUsd, roundUsd } from "../billing/money.ts";
import type { UsageLine } from "../billing/reports/schemas.ts";
import { DAY_MS, dayName, dayOf } from "../store/days.ts";
import { COMPACT_NUMBER } from "./format.tsx";

/** Size of a chart, in units of its view box. */
const [WIDTH, HEIGHT] = [560, 200];
/** Margins for the labels of the axes, in units of the view box. */
const [LEFT_MARGIN, BOTTOM_MARGIN, TOP_MARGIN] = [58, 20, 8];
/** Approximate number of horizontal lines. */
const TICKS = 4;
/** Largest number of labels below a chart. */
const MAX_LABELS = 5;
/** Empty share of a step's width. */
const GAP_SHARE = 0.2;

/** Days of the charts of keys and groups. */
export const CHART_DAYS = 30;

/** Returns the period of the charts of keys and groups. */
export function chartPeriod(now: number): { since: number; until: number } {
  return { since: (dayOf(now + 1) - CHART_DAYS + 1) * DAY_MS, until: now + 1 };
}

/** A step of a chart. */
export interface ChartStep {
  /** Start of the step, Unix time in milliseconds. */
  since: number;
  /** Text with the values of the step. */
  title: string;
  /** Path of the page with the requests of the step; absent: none. */
  href?: string;
}

/** A part of stacked bars. */
export interface ChartPart {
  /** CSS class that sets its color. */
  class: string;
  values: readonly number[];
}

interface ChartOptions {
  /** Description for screen readers. */
  label: string;
  steps: readonly ChartStep[];
  format: (value: number) => string;
}

/** Shows stacked bars over time. */
export function BarChart({ parts, ...options }: ChartOptions & { parts: readonly ChartPart[] }): VNode {
  const indexes = options.steps.map((_, index) => index);
  const stacks = stack<number, ChartPart>().keys(parts).value((index, { values }) => values[index] ?? 0)(indexes);
  const max = Math.max(0, ...stacks.flatMap((part) => part.map(([, upper]) => upper)));
  const scales = scalesOf(options.steps.length, max);
  const { x, y } = scales;
  const barOf = ([lower, upper]: readonly [number, number], index: number) =>
    upper > lower
      ? `M${round(x(index))},${round(y(lower))}V${round(y(upper))}h${round(x.width)}V${round(y(lower))}z`
      : "";
  return (
    <Chart {...options} {...scales}>
      {parts.map((part, at) => <path class={`part ${part.class}`} d={stacks[at]?.map(barOf).join("") ?? ""} />)}
    </Chart>
  );
}

/** Shows lines over time. Steps without a value are gaps. */
export function LineChart(
  { lines, ...options }: ChartOptions & {
    lines: readonly { class: string; values: readonly (number | undefined)[] }[];
  },
): VNode {
  const max = Math.max(0, ...lines.flatMap(({ values }) => values.map((value) => value ?? 0)));
  const scales = scalesOf(options.steps.length, max);
  const { x, y } = scales;
  const draw = line<number | undefined>().x((_, index) => x(index) + x.width / 2).y((value) => y(value ?? 0))
    .defined((value) => value !== undefined);
  return (
    <Chart {...options} {...scales}>
      {lines.map(({ class: name, values }) => <path class={`line ${name}`} d={draw(values) ?? ""} />)}
    </Chart>
  );
}

/** Positions of steps and values in the view box. */
interface ChartScales {
  /** Returns the left edge of a step's bar; `width` is the width of a bar. */
  x: ((index: number) => number) & { width: number };
  /** Returns the vertical position of a value. */
  y: ((value: number) => number) & { ticks(count: number): number[] };
}

function scalesOf(count: number, max: number): ChartScales {
  const names = Array.from({ length: count }, (_, index) => String(index));
  const bands = scaleBand().domain(names).range([LEFT_MARGIN, WIDTH]).paddingInner(GAP_SHARE);
  const y = scaleLinear().domain([0, max > 0 ? max : 1]).range([HEIGHT - BOTTOM_MARGIN, TOP_MARGIN]).nice(TICKS);
  return { x: Object.assign((index: number) => bands(String(index)) ?? LEFT_MARGIN, { width: bands.bandwidth() }), y };
}

/** Shows the axes of a chart, its content, and an area for the pointer at each step. */
function Chart(
  { label, steps, format, x, y, children }: ChartOptions & ChartScales & { children: ComponentChildren },
): VNode {
  const stepsPerLabel = Math.ceil(steps.length / MAX_LABELS);
  return (
    <svg class="chart" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="group" aria-label={label}>
      {y.ticks(TICKS).map((value) => (
        <>
          <line x1={LEFT_MARGIN} x2={WIDTH} y1={round(y(value))} y2={round(y(value))} />
          <text x={LEFT_MARGIN - 6} y={round(y(value) + 4)} text-anchor="end">{format(value)}</text>
        </>
      ))}
      {children}
      {steps.map((step, index) => (
        <>
          {index % stepsPerLabel === 0 && <StepLabel since={step.since} isDay={isDaily(steps)} x={x(index)} />}
          <StepTarget step={step} x={x(index)} width={x.width / (1 - GAP_SHARE)} />
        </>
      ))}
    </svg>
  );
}

/** Shows the time or day of a step. A script replaces times by those of the viewer's zone; days remain days by UTC. */
function StepLabel({ since, isDay, x }: { since: number; isDay: boolean; x: number }): VNode {
  const iso = new Date(since).toISOString();
  return (
    <text x={round(x)} y={HEIGHT - 4} data-time={isDay ? undefined : iso}>
      {isDay ? iso.slice(0, 10) : iso.slice(11, 16)}
    </text>
  );
}

/**
 * Shows the pointer's area of a step. Its link cannot be focused by keyboard: a table beside the chart has the same
 * links.
 */
function StepTarget({ step: { title, href }, x, width }: { step: ChartStep; x: number; width: number }): VNode {
  const area = (
    <>
      <title>{title}</title>
      <rect
        class="target"
        x={round(x)}
        y={TOP_MARGIN}
        width={round(width)}
        height={HEIGHT - BOTTOM_MARGIN - TOP_MARGIN}
      />
    </>
  );
  return href === undefined ? <g>{area}</g> : <a href={href} tabIndex={-1}>{area}</a>;
}

function isDaily([first, second]: readonly ChartStep[]): boolean {
  return first === undefined || second === undefined || second.since - first.since >= DAY_MS;
}

function round(value: number): string {
  return value.toFixed(1);
}

/**
 * Shows the cost of each UTC day as bars. Days without requests are gaps.
 * @param props `since`: start of the chart; `until`: its end, not included; Unix time in milliseconds
 */
export function DayChart(
  { days, since, until }: { days: readonly UsageLine[]; since: number; until: number },
): VNode {
  const first = Math.floor(since / DAY_MS);
  const length = Math.max(1, Math.ceil(until / DAY_MS) - first);
  const names = Array.from({ length }, (_, day) => dayName(first + day));
  const costs = new Map(days.map(({ name, cost_usd }) => [name, cost_usd]));
  const maxCost = days.map(({ cost_usd }) => cost_usd).reduce((a, b) => parseUsd(a) > parseUsd(b) ? a : b, "0");
  return (
    <figure>
      <figcaption>Cost per day (UTC)</figcaption>
      <BarChart
        label={`Cost per day, at most ${roundUsd(maxCost)} USD${days.length === 0 ? "; nothing was spent" : ""}`}
        steps={names.map((name, day) => ({
          since: (first + day) * DAY_MS,
          title: `${name}: ${costs.get(name) ?? "0"} USD`,
        }))}
        parts={[{ class: "p0", values: names.map((name) => usdNumber(parseUsd(costs.get(name) ?? "0"))) }]}
        format={usdTick}
      />
    </figure>
  );
}

/** Returns an amount in USD as a number, which is exact enough for a chart. */
export function usdNumber(amount: bigint): number {
  return Number(formatUsd(amount));
}

/** Formats an amount in USD for an axis. */
export function usdTick(value: number): string {
  return `$${countTick(value)}`;
}

/** Formats a count for an axis. */
export function countTick(value: number): string {
  return COMPACT_NUMBER.format(value);
}

/** Formats a duration for an axis, with a no-break space before its unit. @param value milliseconds */
export function millisecondsTick(value: number): string {
  return value >= 1000 ? `${countTick(value / 1000)}\u00a0s` : `${countTick(value)}\u00a0ms`;
}
