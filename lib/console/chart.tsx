/** Charts of the console, drawn as SVG on the server. */
import { scaleBand, scaleLinear } from "d3-scale";
import { line, stack } from "d3-shape";
import type { ComponentChildren, VNode } from "preact";
import { formatUsd, parseUsd, roundUsd } from "../billing/money.ts";
import type { UsageLine } from "../billing/reports/schemas.ts";
import { DAY_MS, dayName } from "../store/days.ts";

/** Size of a chart, and the margins for the labels of its axes, in units of its view box. */
const [WIDTH, HEIGHT] = [560, 200];
const [LEFT, BOTTOM, TOP] = [58, 20, 8];
/** Lines across a chart, and labels below it, about. */
const TICKS = 4;
const LABELS = 5;
/** Share of a step that is empty. */
const GAP = 0.2;

/** One step of a chart. */
export interface ChartStep {
  /** Beginning, Unix milliseconds. */
  since: number;
  /** The values in words. */
  title: string;
  /** Page with the requests behind it. */
  href?: string;
}

/** One part of piled bars: `class` has its color. */
export interface ChartPart {
  class: string;
  /** By step. */
  values: readonly number[];
}

/** Parts of every chart. */
interface ChartOptions {
  /** Its content, in a few words. */
  label: string;
  steps: readonly ChartStep[];
  /** Writes a value of the axis. */
  format: (value: number) => string;
}

/** Bars over time, each piled up from its parts. */
export function BarChart({ parts, ...options }: ChartOptions & { parts: readonly ChartPart[] }): VNode {
  const indexes = options.steps.map((_, index) => index);
  const piles = stack<number, ChartPart>().keys(parts).value((index, { values }) => values[index] ?? 0)(indexes);
  const scales = scalesOf(
    options.steps.length,
    Math.max(0, ...piles.flatMap((pile) => pile.map(([, upper]) => upper))),
  );
  const { x, y } = scales;
  const barOf = ([lower, upper]: readonly [number, number], index: number) =>
    upper > lower
      ? `M${round(x(index))},${round(y(lower))}V${round(y(upper))}h${round(x.width)}V${round(y(lower))}z`
      : "";
  return (
    <Chart {...options} {...scales}>
      {parts.map((part, at) => <path class={`part ${part.class}`} d={piles[at]?.map(barOf).join("") ?? ""} />)}
    </Chart>
  );
}

/** Lines over time; steps without a value are gaps. */
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

/** Places of steps and values. */
interface ChartScales {
  /** The left end of a step's bar. */
  x: ((index: number) => number) & { width: number };
  y: ((value: number) => number) & { ticks(count: number): number[] };
}

function scalesOf(count: number, max: number): ChartScales {
  const bands = scaleBand().domain(Array.from({ length: count }, (_, index) => String(index))).range([LEFT, WIDTH])
    .paddingInner(GAP);
  const y = scaleLinear().domain([0, max > 0 ? max : 1]).range([HEIGHT - BOTTOM, TOP]).nice(TICKS);
  return { x: Object.assign((index: number) => bands(String(index)) ?? LEFT, { width: bands.bandwidth() }), y };
}

/** The axes of a chart, and a place to point at for each step. */
function Chart(
  { label, steps, format, x, y, children }: ChartOptions & ChartScales & { children: ComponentChildren },
): VNode {
  const each = Math.ceil(steps.length / LABELS);
  return (
    <svg class="chart" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="group" aria-label={label}>
      {y.ticks(TICKS).map((value) => (
        <>
          <line x1={LEFT} x2={WIDTH} y1={round(y(value))} y2={round(y(value))} />
          <text x={LEFT - 6} y={round(y(value) + 4)} text-anchor="end">{format(value)}</text>
        </>
      ))}
      {children}
      {steps.map((step, index) => (
        <>
          {index % each === 0 && <StepLabel since={step.since} isDay={isDaily(steps)} x={x(index)} />}
          <StepTarget step={step} x={x(index)} width={x.width / (1 - GAP)} />
        </>
      ))}
    </svg>
  );
}

/** The script of the console replaces times by those of the viewer's zone; days are days by UTC. */
function StepLabel({ since, isDay, x }: { since: number; isDay: boolean; x: number }): VNode {
  const iso = new Date(since).toISOString();
  return (
    <text x={round(x)} y={HEIGHT - 4} data-time={isDay ? undefined : iso}>
      {isDay ? iso.slice(0, 10) : iso.slice(11, 16)}
    </text>
  );
}

/** Links are in the table beside the chart as well: the keyboard does not stop at each bar. */
function StepTarget({ step: { title, href }, x, width }: { step: ChartStep; x: number; width: number }): VNode {
  const area = (
    <>
      <title>{title}</title>
      <rect class="target" x={round(x)} y={TOP} width={round(width)} height={HEIGHT - BOTTOM - TOP} />
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
 * Cost per UTC day as bars; days without requests are gaps.
 * @param since first moment of the chart, `until` the one after its last; Unix milliseconds
 */
export function DayChart(
  { days, since, until }: { days: readonly UsageLine[]; since: number; until: number },
): VNode {
  const first = Math.floor(since / DAY_MS);
  const names = Array.from({ length: Math.max(1, Math.ceil(until / DAY_MS) - first) }, (_, at) => dayName(first + at));
  const costs = new Map(days.map(({ name, cost_usd }) => [name, cost_usd]));
  const highest = days.map(({ cost_usd }) => cost_usd).reduce((a, b) => parseUsd(a) > parseUsd(b) ? a : b, "0");
  return (
    <figure>
      <figcaption>Cost per day (UTC)</figcaption>
      <BarChart
        label={`Cost per day, at most ${roundUsd(highest)} USD${days.length === 0 ? "; nothing was spent" : ""}`}
        steps={names.map((name, at) => ({
          since: (first + at) * DAY_MS,
          title: `${name}: ${costs.get(name) ?? "0"} USD`,
        }))}
        parts={[{ class: "p0", values: names.map((name) => usdNumber(parseUsd(costs.get(name) ?? "0"))) }]}
        format={usdTick}
      />
    </figure>
  );
}

/** The length of an amount in a chart, in USD: amounts are exact, pixels need not be. */
export function usdNumber(amount: bigint): number {
  return Number(formatUsd(amount));
}

const TICK = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

/** Writes an amount of an axis. */
export function usdTick(value: number): string {
  return `$${TICK.format(value)}`;
}

/** Writes a count of an axis. */
export function countTick(value: number): string {
  return TICK.format(value);
}

/** Writes a time of an axis, which does not break before its unit. @param value milliseconds */
export function millisecondsTick(value: number): string {
  return value >= 1000 ? `${TICK.format(value / 1000)}\u00a0s` : `${TICK.format(value)}\u00a0ms`;
}
