/** Measures the difference to the server's clock, by which leases end: the clocks of the nodes need not agree. */
import type { Sql } from "./client.ts";

/** Time for which a measurement is valid, in milliseconds. */
const MEASURE_EVERY_MS = 60_000;

/** Smaller differences count as 0, in milliseconds: leases last many seconds, and a measurement is never exact. */
const MIN_DIFFERENCE_MS = 1_000;

/**
 * Creates a function that returns the milliseconds by which the server's clock is ahead of this node's, which may be
 * negative. It measures the difference at its first call, and then about once a minute while it is called.
 * @param parts `now`: the clock of this node, Unix time in milliseconds, which must not jump, or a measurement would
 * become wrong; `monotonic`: monotonic time in milliseconds
 */
export function measureClock(
  sql: Sql,
  { now, monotonic }: { now: () => number; monotonic: () => number },
): () => Promise<bigint> {
  let measured: bigint | undefined;
  let measuredAt = 0;
  let measuring: Promise<bigint> | undefined;

  async function measure(): Promise<bigint> {
    const startedAt = monotonic();
    const [row] = await sql<{ ms: bigint }[]>`SELECT ledger_clock() AS ms`;
    measuredAt = monotonic();
    const aheadMs = Number(row?.ms) + (measuredAt - startedAt) / 2 - now();
    measured = Math.abs(aheadMs) < MIN_DIFFERENCE_MS ? 0n : BigInt(Math.round(aheadMs));
    return measured;
  }

  function startMeasuring(): Promise<bigint> {
    measuring ??= measure().finally(() => measuring = undefined);
    return measuring;
  }

  return async () => {
    if (measured === undefined) return await startMeasuring();
    // Measured in the background for later callers. A failure needs no handling: the caller's own statements fail, too.
    if (monotonic() - measuredAt >= MEASURE_EVERY_MS) startMeasuring().catch(() => {});
    return measured;
  };
}
