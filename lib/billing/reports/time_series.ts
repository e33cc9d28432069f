/** Usage over time, grouped by model, key, group or upstream. */
import { compareValues } from "../../compare_values.ts";
import { addFigures, noFigures, TIME_STEPS } from "../../store/days.ts";
import type { LedgerStore, SumFigures } from "../../store/ledger.ts";
import { readKeptEntries } from "./kept_entries.ts";
import type { Period } from "./period.ts";

/** Groupings of a time series. */
export const SERIES_BY = ["model", "key", "group", "upstream"] as const;

/** One model, key, group or upstream. */
export interface SeriesPart {
  /** Id of the key, or name of the model, group or upstream; empty for requests without one. */
  name: string;
  total: SumFigures;
  steps: readonly SumFigures[];
}

/** Figures over time. */
export interface TimeSeries {
  /** The steps, oldest first; the last one is not over yet. */
  steps: readonly Period[];
  total: SumFigures;
  /** Figures of all requests in each step. */
  totals: readonly SumFigures[];
  /** The parts with the highest cost. */
  parts: readonly SeriesPart[];
  /** All other parts together; absent if there are none. */
  others?: SeriesPart;
}

/** A query of usage over time. */
export interface TimeSeriesQuery {
  /** The last step includes this moment; Unix milliseconds. */
  now: number;
  /** Unit of `length`; steps begin with a whole minute, hour or day (UTC). */
  unit: keyof typeof TIME_STEPS;
  /** Length of a step in units. */
  length: number;
  count: number;
  by: typeof SERIES_BY[number];
  /** Maximum number of parts that are listed individually. */
  limit: number;
  signal?: AbortSignal;
}

/** Returns the steps of a query, oldest first. The last one ends with the current minute, hour or day. */
export function timeSteps({ now, unit, length, count }: Omit<TimeSeriesQuery, "by" | "limit" | "signal">): Period[] {
  const { ms } = TIME_STEPS[unit];
  const end = (Math.floor(now / ms) + 1) * ms;
  return Array.from({ length: count }, (_, index) => ({
    since: end - (count - index) * length * ms,
    until: end - (count - index - 1) * length * ms,
  }));
}

/**
 * Adds up usage over time. Days come from the sums per day; hours, minutes and the grouping by upstream need entries
 * that are not pruned.
 * @throws {PrunedEntriesError} if entries are needed, and some of the period were pruned
 * @throws the signal's reason if it is aborted
 */
export async function readTimeSeries(
  ledger: Pick<LedgerStore, "usage" | "start">,
  query: TimeSeriesQuery,
): Promise<TimeSeries> {
  const { unit, by, limit, signal } = query;
  const steps = timeSteps(query);
  const [since, until] = [steps[0]?.since ?? query.now, steps.at(-1)?.until ?? query.now];
  const needed = unit !== "day" || by === "upstream"
    ? { since, until, by: unit === "day" ? "upstream" : unit }
    : undefined;
  const sums = await readKeptEntries(ledger, needed, async () => {
    const sums = await ledger.usage({ since, until, by, thenBy: unit }, signal);
    signal?.throwIfAborted();
    return sums;
  });
  const totals = new Map<string, SumFigures>();
  for (const sum of sums) addFigures(figuresOf(totals, sum.name), sum);
  const highestCost = [...totals].sort(byCost).slice(0, limit).map(([name]) => name);
  const lengthMs = query.length * TIME_STEPS[unit].ms;
  const parts = new Map<string | undefined, SeriesPart>();
  const all = emptyPart("", steps.length);
  for (const sum of sums) {
    const name = highestCost.includes(sum.name) ? sum.name : undefined;
    let part = parts.get(name);
    if (part === undefined) parts.set(name, part = emptyPart(name ?? "others", steps.length));
    const step = Math.floor((momentOf(sum.thenName ?? "", unit) - since) / lengthMs);
    for (const { total, steps } of [part, all]) {
      addFigures(total, sum);
      const figures = steps[step];
      if (figures !== undefined) addFigures(figures, sum);
    }
  }
  const others = parts.get(undefined);
  return {
    steps,
    total: all.total,
    totals: all.steps,
    parts: highestCost.flatMap((name) => parts.get(name) ?? []),
    ...(others !== undefined && { others }),
  };
}

function figuresOf(sums: Map<string, SumFigures>, name: string): SumFigures {
  let sum = sums.get(name);
  if (sum === undefined) sums.set(name, sum = noFigures());
  return sum;
}

function byCost([, one]: [string, SumFigures], [, other]: [string, SumFigures]): number {
  return compareValues(other.cost, one.cost) || other.requests - one.requests;
}

function emptyPart(name: string, steps: number): SeriesPart {
  return { name, total: noFigures(), steps: Array.from({ length: steps }, noFigures) };
}

/** Returns the start of a day, hour or minute by its name in sums, in Unix milliseconds. */
function momentOf(name: string, unit: keyof typeof TIME_STEPS): number {
  return Date.parse(unit === "day" ? name : `${name}${unit === "hour" ? ":00" : ""}Z`);
}
