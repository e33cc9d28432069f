/** Latencies of answered requests over time, from single entries: all of a step, or a sample of it. */
import { yieldToEventLoop } from "../../scheduler.ts";
import type { KeptEntry, LedgerStore } from "../../store/ledger.ts";
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

/** Longest work between two turns of the event loop, in milliseconds. */
const SLICE_MS = 8;

/** A latency, and the number of requests that it stands for. */
type Weighted = readonly [ms: number, weight: number];

/**
 * Reads latencies. Of a step with many requests, a sample: the first requests of stretches of equal length.
 * @param steps with the number of their requests
 * @throws the reason of the signal, where it is given up
 */
export async function readLatencies(
  ledger: Pick<LedgerStore, "entriesWithin">,
  steps: readonly (Period & { requests: number })[],
  signal?: AbortSignal,
): Promise<LatencySeries> {
  const places = Math.max(1, Math.ceil(PLACES / steps.length));
  const [first, total]: [Weighted[], Weighted[]] = [[], []];
  const found: Latencies[] = [];
  let read = 0;
  let isWhole = true;
  const rest = createRest();
  for (const step of steps) {
    const entries = await readStep(ledger, step, { places, rest });
    read += entries.length;
    isWhole &&= entries.length >= step.requests;
    const answered = entries.filter(isAnswered);
    const weight = step.requests / Math.max(1, entries.length);
    const [own, ownTotal] = [answered.map(({ firstMs = 0 }) => firstMs), answered.map(({ totalMs }) => totalMs)];
    first.push(...own.map((ms): Weighted => [ms, weight]));
    total.push(...ownTotal.map((ms): Weighted => [ms, weight]));
    found.push(latenciesOf(own.map((ms) => [ms, 1]), ownTotal.map((ms) => [ms, 1])));
    signal?.throwIfAborted();
  }
  return { all: latenciesOf(first, total), steps: found, read, isWhole };
}

async function readStep(
  ledger: Pick<LedgerStore, "entriesWithin">,
  { since, until, requests }: Period & { requests: number },
  { places, rest }: { places: number; rest: () => Promise<void> },
): Promise<KeptEntry[]> {
  if (requests === 0) return [];
  const limit = places * AT_ONCE;
  await rest();
  if (requests <= limit) return await ledger.entriesWithin({ since, until, after: 0, limit });
  const entries: KeptEntry[] = [];
  for (let place = 0; place < places; place++) {
    const from = since + Math.floor(place * (until - since) / places);
    const to = since + Math.floor((place + 1) * (until - since) / places);
    entries.push(...await ledger.entriesWithin({ since: from, until: to, after: 0, limit: AT_ONCE }));
    await rest();
  }
  return entries;
}

/** Returns a function that lets others work where the present slice is over: a turn for each place would take longer. */
function createRest(): () => Promise<void> {
  let end = performance.now() + SLICE_MS;
  return async () => {
    if (performance.now() < end) return;
    await yieldToEventLoop();
    end = performance.now() + SLICE_MS;
  };
}

/** Requests that failed say nothing about how long an answer takes. */
function isAnswered({ ending, firstMs }: KeptEntry): boolean {
  return firstMs !== undefined && ending !== "failed" && ending !== "refused" && ending !== "lost";
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
  const wanted = percent * sorted.reduce((sum, [, weight]) => sum + weight, 0);
  let sum = 0;
  for (const [ms, weight] of sorted) {
    sum += weight;
    if (100 * sum >= wanted) return ms;
  }
  return sorted.at(-1)?.[0] ?? 0;
}
