/** Health that never makes a target unavailable, for tests of other things whose upstreams fail repeatedly. */
import { RetryBudget } from "../../lib/routing/target_statistics.ts";
import type { Health } from "../../lib/routing/health.ts";
import { BREAKER } from "../routing/breaker.ts";
import { HealthTracker } from "../../lib/routing/health_tracker.ts";

/** Grants every permit. */
export function forgivingHealth(): Health {
  const health = new HealthTracker({ breaker: BREAKER, monotonic: () => 0, now: () => 0, random: () => 0 });
  return {
    acquirePermit: ({ target: { upstream, model }, key }) => ({
      granted: true,
      permit: { target: { upstream, model }, key, isTrial: false, tickets: { all: { epoch: 0 }, client: undefined } },
    }),
    unavailability: () => undefined,
    isUp: () => true,
    isFailing: () => false,
    report() {},
    recordSpeed() {},
    speed: (target) => health.speed(target),
    snapshot: () => [],
    reconfigure() {},
    retryBudget: () => new RetryBudget(),
    renewKeys() {},
    close() {},
  };
}
