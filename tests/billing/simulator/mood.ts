/** The random parameters of a run, by its seed: rare events coincide in some runs and do not occur in others. */
import type { Random } from "../../support/random.ts";
import { type Customer, CUSTOMERS } from "./shop.ts";

/** Probabilities of a run. */
export interface Mood {
  /** Steps of its whole history. */
  steps: number;
  /** Number of requests. */
  requests: number;
  /** Chance that a call fails. */
  fails: number;
  /** Chance that the process dies at a call. */
  crashes: number;
  /** True if the wall clock jumps. */
  jumps: boolean;
  /** True if limits are counted in another process, through calls that may fail. */
  farLimits: boolean;
  /** Customers: few in many runs, so that they collide. */
  customers: readonly Customer[];
}

/** The mood of a seed. */
export function moodOf(random: Random): Mood {
  const few = Array.from({ length: 1 + random.below(3) }, () => random.pick(CUSTOMERS));
  return {
    steps: 120 + random.below(200),
    requests: 8 + random.below(40),
    fails: random.pick([0, 0, 0, 0.01, 0.05, 0.3]),
    crashes: random.pick([0, 0.002, 0.01, 0.03]),
    jumps: random.chance(0.4),
    farLimits: random.chance(0.2),
    customers: random.chance(0.5) ? few : CUSTOMERS,
  };
}
