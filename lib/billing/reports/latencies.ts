/**
 * Latency percentiles over time, computed from ledger entries: from all entries of a step, or from a sample if there
 * are many.
 */
import type { DurationSpan, LedgerStore } from "../../store/ledger.ts";
import type { Period } from "./period.ts";

/** Half of the requests took at most `p50` milliseconds, and 95 of 100 at most `p95`. */
export interface LatencyQuantiles {
  p50: number;
  p95: number;
}

/** Latencies until the first event or byte of an answer, and until its end; absent if there were no answers. */
export interface Latencies {
  first?: LatencyQuantiles;
  total?: LatencyQuantiles;
}

/** Latencies over time. */
export interface LatencySeries {
  /** Latencies of the whole period, in which a step weighs as much as it has requests. */
  all: Latencies;
  steps: readonly Latencies[];
  read: number;
  /** True if all entries of the period were read. */
  isWhole: boolean;
}

/** Samples of a period, divided among its steps, and entries that are read for each. */
const SAMPLES_PER_PERIOD = 240;
const ENTRIES_PER_SAMPLE = 25;

/** A latency, and the number of requests that it represents. */
type Weighted = readonly [ms: number, weight: number];

type CountedStep = Period & { requests: number };

/**
 * Reads the latencies of a period that consists of these steps. Of a step with many requests it reads samples, each of
 * the first requests of a part of the step; the parts are equally long. Failed requests are ignored, as they do not
 * show how long an answer takes.
 * @throws the signal's reason if it is aborted
 */
export async function readLatencies(
  ledger: Pick<LedgerStore, "durations">,
  steps: readonly CountedStep[],
  signal?: AbortSignal,
): Promise<LatencySeries> {
  const samplesPerStep = Math.max(1, Math.ceil(SAMPLES_PER_PERIOD / steps.length));
  const spans = steps.map((step) => spansOf(step, samplesPerStep));
  const durations = await ledger.durations(spans.flat(), signal);
  signal?.throwIfAborted();
  const [first, total]: [Weighted[], Weighted[]] = [[], []];
  const latencies: Latencies[] = [];
  let [start, read] = [0, 0];
  let isWhole = true;
  for (const [index, { requests }] of steps.entries()) {
    const end = start + (spans[index]?.length ?? 0);
    const ofStep = durations.slice(start, end);
    start = end;
    const count = ofStep.reduce((sum, { read }) => sum + read, 0);
    read += count;
    isWhole &&= count >= requests;
    const answered = ofStep.flatMap(({ answered }) => answered);
    const weight = requests / Math.max(1, count);
    first.push(...answered.map(({ firstMs }): Weighted => [firstMs, weight]));
    total.push(...answered.map(({ totalMs }): Weighted => [totalMs, weight]));
    latencies.push(
      latenciesOf(answered.map(({ firstMs }) => [firstMs, 1]), answered.map(({ totalMs }) => [totalMs, 1])),
    );
  }
  return { all: latenciesOf(first, total), steps: latencies, read, isWhole };
}

/** Returns the spans to read: the whole step, or evenly spaced parts if it has too many requests. */
function spansOf({ since, until, requests }: CountedStep, samples: number): DurationSpan[] {
  if (requests === 0) return [];
  if (requests <= samples * ENTRIES_PER_SAMPLE) return [{ since, until, limit: samples * ENTRIES_PER_SAMPLE }];
  const startOf = (sample: number) => since + Math.floor(sample * (until - since) / samples);
  return Array.from({ length: samples }, (_, sample) => ({
    since: startOf(sample),
    until: startOf(sample + 1),
    limit: ENTRIES_PER_SAMPLE,
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

/** Returns the smallest latency that `percent` of the requests do not exceed: the nearest rank, with weights. */
function quantileOf(sorted: readonly Weighted[], percent: number): number {
  const rank = percent * sorted.reduce((sum, [, weight]) => sum + weight, 0);
  let sum = 0;
  for (const [ms, weight] of sorted) {
    sum += weight;
    if (100 * sum >= rank) return ms;
  }
  return sorted.at(-1)?.[0] ?? 0;
}
