/** Usage over time, grouped by model, key, group or upstream. */
import { addFigures, NO_TOKENS, TIME_STEPS } from "../../store/days.ts";
import type { LedgerStore, UsageSum } from "../../store/ledger.ts";
import { requireEntries } from "./kept_entries.ts";
import type { Period } from "./period.ts";

/** Figures of a sum. Amounts are in 1e-12 USD. */
export type SeriesFigures = Omit<UsageSum, "name" | "thenName" | "saved">;

/** Groupings of a time series. */
export const SERIES_BY = ["model", "key", "group", "upstream"] as const;

/** One model, key, group or upstream. */
export interface SeriesPart {
  /** Id of the key, or name; empty for requests without one. */
  name: string;
  total: SeriesFigures;
  /** By step. */
  steps: readonly SeriesFigures[];
}

/** Figures over time. */
export interface TimeSeries {
  /** The steps; the last one is not over yet. */
  steps: readonly Period[];
  /** All requests. */
  total: SeriesFigures;
  totals: readonly SeriesFigures[];
  /** The parts with the highest cost. */
  parts: readonly SeriesPart[];
  /** All others together; absent: there are none. */
  others?: SeriesPart;
}

/** A query of usage over time. */
export interface TimeSeriesQuery {
  /** The last step includes this moment; Unix milliseconds. */
  now: number;
  /** Length of a step: so many minutes, hours or days by UTC. */
  unit: keyof typeof TIME_STEPS;
  length: number;
  /** Steps. */
  count: number;
  by: typeof SERIES_BY[number];
  /** Most parts that are listed by themselves. */
  limit: number;
  /** Cancels the work. */
  signal?: AbortSignal;
}

/** The steps of a query: the last one ends with the present minute, hour or day. */
export function timeSteps({ now, unit, length, count }: Omit<TimeSeriesQuery, "by" | "limit" | "signal">): Period[] {
  const { ms } = TIME_STEPS[unit];
  const end = (Math.floor(now / ms) + 1) * ms;
  return Array.from({ length: count }, (_, index) => ({
    since: end - (count - index) * length * ms,
    until: end - (count - index - 1) * length * ms,
  }));
}

/**
 * Sums up the ledger over time: days from the sums per day, hours and minutes from single entries.
 * @throws {PrunedEntriesError} where single entries are needed, and some of the period are pruned
 * @throws the reason of the signal, where it is given up
 */
export async function readTimeSeries(
  ledger: Pick<LedgerStore, "usage" | "start">,
  query: TimeSeriesQuery,
): Promise<TimeSeries> {
  const { unit, by, limit, signal } = query;
  const steps = timeSteps(query);
  const [since, until] = [steps[0]?.since ?? query.now, steps.at(-1)?.until ?? query.now];
  if (unit !== "day" || by === "upstream") {
    await requireEntries(ledger, { since, by: unit === "day" ? "upstream" : unit });
  }
  const sums = await ledger.usage({ since, until, by, thenBy: unit }, signal);
  signal?.throwIfAborted();
  const totals = new Map<string, SeriesFigures>();
  for (const sum of sums) addFigures(entryOf(totals, sum.name), sum);
  const dearest = [...totals].sort(byCost).slice(0, limit).map(([name]) => name);
  const lengthMs = query.length * TIME_STEPS[unit].ms;
  const parts = new Map<string | undefined, SeriesPart>();
  const all = emptyPart("", steps.length);
  for (const sum of sums) {
    const name = dearest.includes(sum.name) ? sum.name : undefined;
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
    parts: dearest.flatMap((name) => parts.get(name) ?? []),
    ...(others !== undefined && { others }),
  };
}

function entryOf(sums: Map<string, SeriesFigures>, name: string): SeriesFigures {
  let sum = sums.get(name);
  if (sum === undefined) sums.set(name, sum = noFigures());
  return sum;
}

function byCost([, one]: [string, SeriesFigures], [, other]: [string, SeriesFigures]): number {
  return one.cost === other.cost ? other.requests - one.requests : one.cost > other.cost ? -1 : 1;
}

function emptyPart(name: string, steps: number): SeriesPart {
  return { name, total: noFigures(), steps: Array.from({ length: steps }, noFigures) };
}

function noFigures(): SeriesFigures {
  return { requests: 0, failed: 0, tokens: { ...NO_TOKENS }, images: 0, cost: 0n, overrun: 0n };
}

/** The beginning of a day, hour or minute by its name, in Unix milliseconds. */
function momentOf(name: string, unit: keyof typeof TIME_STEPS): number {
  return Date.parse(unit === "day" ? name : `${name}${unit === "hour" ? ":00" : ""}Z`);
}
