/** The server's clock, which leases use: the clocks of the nodes need not agree. */
import type { Sql } from "./client.ts";

/** Validity of a measurement, in milliseconds. */
const MEASURE_EVERY_MS = 60_000;

/** Smaller differences count as zero: leases last many seconds, and a measurement is never exact. */
const SAME_MS = 1_000;

/** Parts of the clock. */
export interface ClockParts {
  /** Local clock that does not jump, Unix time in milliseconds: a measurement must hold until the next one. */
  now: () => number;
  /** Monotonic time in milliseconds. */
  monotonic: () => number;
}

/** Translates between two clocks. */
export interface ServerClock {
  /** Milliseconds by which the server's clock is ahead of this node's. */
  offset(): Promise<bigint>;
}

/** Creates the clock. It measures at the first use. */
export function createServerClock(sql: Sql, { now, monotonic }: ClockParts): ServerClock {
  let known: bigint | undefined;
  let measuredAt = 0;
  let measuring: Promise<bigint> | undefined;

  async function measure(): Promise<bigint> {
    const startedAt = monotonic();
    const [row] = await sql<{ ms: bigint }[]>`SELECT ledger_clock() AS ms`;
    measuredAt = monotonic();
    const aheadMs = Number(row?.ms) + (measuredAt - startedAt) / 2 - now();
    known = Math.abs(aheadMs) < SAME_MS ? 0n : BigInt(Math.round(aheadMs));
    return known;
  }

  function again(): Promise<bigint> {
    measuring ??= measure().finally(() => measuring = undefined);
    return measuring;
  }

  return {
    async offset() {
      if (known === undefined) return await again();
      // The next caller gets the newer measurement; if that fails, so does the caller's work.
      if (monotonic() - measuredAt >= MEASURE_EVERY_MS) again().catch(() => {});
      return known;
    },
  };
}
