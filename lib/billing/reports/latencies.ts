/** Latencies of answered requests over time, from single entries: all of a step, or a sample of it. */
import type { DurationSpan, LedgerStore } from "../../store/ledger.ts";
import type { Period } from "./period.ts";

/** Half of the requests took at most `p50` milliseconds, and 95 of 100 at most `p95`. */
export interface LatencyQuantiles {
  p50: number;
  p95: number;
}

/** Latencies until the first event or byte of an answer, and until its end; absent where there was none. */
export interface Latencies {
  first?: LatencyQuantiles;
  total?: LatencyQuantiles;
}

/** Latencies over time. */
export interface LatencySeries {
  /** Of the whole period: each step counts as often as it has requests. */
  all: Latencies;
  steps: readonly Latencies[];
  /** Entries that were read. */
  read: number;
  /** True: these are all entries of the period. */
  isWhole: boolean;
}

/** Places in the whole period at which entries are read, and entries that are read at each. */
const PLACES = 240;
const AT_ONCE = 25;

/** A latency, and the number of requests that it stands for. */
type Weighted = readonly [ms: number, weight: number];

/** A step with the number of its requests. */
type CountedStep = Period & { requests: number };

/**
 * Reads latencies. Of a step with many requests, a sample: the first requests of stretches of equal length. Requests that
 * failed say nothing about how long an answer takes.
 * @throws the reason of the signal, where it is given up
 */
export async function readLatencies(
  ledger: Pick<LedgerStore, "durations">,
  steps: readonly CountedStep[],
  signal?: AbortSignal,
): Promise<LatencySeries> {
  const places = Math.max(1, Math.ceil(PLACES / steps.length));
  const spans = steps.map((step) => spansOf(step, places));
  const durations = await ledger.durations(spans.flat(), signal);
  signal?.throwIfAborted();
  const [first, total]: [Weighted[], Weighted[]] = [[], []];
  const found: Latencies[] = [];
  let [place, read] = [0, 0];
  let isWhole = true;
  for (const [index, { requests }] of steps.entries()) {
    const end = place + (spans[index]?.length ?? 0);
    const here = durations.slice(place, end);
    place = end;
    const count = here.reduce((sum, { read }) => sum + read, 0);
    read += count;
    isWhole &&= count >= requests;
    const answered = here.flatMap(({ answered }) => answered);
    const weight = requests / Math.max(1, count);
    first.push(...answered.map(({ firstMs }): Weighted => [firstMs, weight]));
    total.push(...answered.map(({ totalMs }): Weighted => [totalMs, weight]));
    found.push(
      latenciesOf(answered.map(({ firstMs }) => [firstMs, 1]), answered.map(({ totalMs }) => [totalMs, 1])),
    );
  }
  return { all: latenciesOf(first, total), steps: found, read, isWhole };
}

/** The whole step if all of it is read, else stretches of it. */
function spansOf({ since, until, requests }: CountedStep, places: number): DurationSpan[] {
  if (requests === 0) return [];
  if (requests <= places * AT_ONCE) return [{ since, until, limit: places * AT_ONCE }];
  const placeAt = (place: number) => since + Math.floor(place * (until - since) / places);
  return Array.from({ length: places }, (_, place) => ({
    since: placeAt(place),
    until: placeAt(place + 1),
    limit: AT_ONCE,
  }));
}

function latenciesOf(first: Weighted[], total: Weighted[]): Latencies {
  if (first.length === 0) return {};
  return { first: quantilesOf(first), total: quantilesOf(total) };
}

function quantilesOf(values: Weighted[]): LatencyQuantiles {
  const sorted = values.toSorted(([one], [other]) => one - other);
  return { p50: quantileOf(sorted, 50), p95: quantileOf(sorted, 95) };
}

/** The smallest value that so many percent of the weight do not exceed (the nearest rank, with weights). */
function quantileOf(sorted: readonly Weighted[], percent: number): number {
  const targetWeight = percent * sorted.reduce((sum, [, weight]) => sum + weight, 0);
  let sum = 0;
  for (const [ms, weight] of sorted) {
    sum += weight;
    if (100 * sum >= targetWeight) return ms;
  }
  return sorted.at(-1)?.[0] ?? 0;
}
