/** The server's clock, which leases are kept by: nodes need not agree about the time. */
import type { Sql } from "./client.ts";

/** Validity of a measurement, in milliseconds. */
const MEASURE_EVERY_MS = 60_000;

/** Clocks that differ by less count as the same: leases are many seconds, and a measurement is never exact. */
const SAME_MS = 1_000;

/** Parts of the clock. */
export interface ClockParts {
  /** Unix time in milliseconds, by a local clock that does not jump: a measurement must hold until the next one. */
  now: () => number;
  /** Monotonic time in milliseconds. */
  monotonic: () => number;
}

/** Translates between two clocks. */
export interface ServerClock {
  /** Lead of the server's clock over this node's, in milliseconds. */
  ahead(): Promise<bigint>;
}

/** Measures nothing before it is asked. */
export function createServerClock(sql: Sql, { now, monotonic }: ClockParts): ServerClock {
  let known: bigint | undefined;
  let measuredAt = 0;
  let measuring: Promise<bigint> | undefined;

  async function measure(): Promise<bigint> {
    const begun = monotonic();
    const [row] = await sql<{ ms: bigint }[]>`SELECT ledger_clock() AS ms`;
    measuredAt = monotonic();
    const aheadMs = Number(row?.ms) + (measuredAt - begun) / 2 - now();
    known = Math.abs(aheadMs) < SAME_MS ? 0n : BigInt(Math.round(aheadMs));
    return known;
  }

  function again(): Promise<bigint> {
    measuring ??= measure().finally(() => measuring = undefined);
    return measuring;
  }

  return {
    async ahead() {
      if (known === undefined) return await again();
      // The next caller gets the newer measurement; if that fails, so does the caller's work.
      if (monotonic() - measuredAt >= MEASURE_EVERY_MS) again().catch(() => {});
      return known;
    },
  };
}
