/** Options of the breakers in these tests. */
import type { BreakerOptions } from "../../lib/routing/health.ts";

/** The default settings of breakers. */
export const BREAKER: BreakerOptions = {
  windowMs: 30_000,
  minSamples: 10,
  failureShare: 0.5,
  consecutiveFailures: 5,
  connectFailures: 5,
  openMs: 5_000,
};
