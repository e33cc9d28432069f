/** Health that never takes a target out, for tests whose upstreams fail in a row and that are about something else. */
import type { Health } from "../../lib/routing/health.ts";
import { BREAKER } from "./breaker.ts";
import { createHealth } from "../../lib/routing/health_tracker.ts";

/** Makes such a health. */
export function forgivingHealth(): Health {
  const health = createHealth({ breaker: BREAKER, monotonic: () => 0, now: () => 0, random: () => 0 });
  return {
    admit: ({ target: { upstream, model }, key }) => ({
      admitted: true,
      pass: { place: { upstream, model }, key, isTrial: false, tickets: { all: { epoch: 0 }, own: undefined } },
    }),
    away: () => undefined,
    isUp: () => true,
    isFailing: () => false,
    report() {},
    measure() {},
    speed: (place) => health.speed(place),
    snapshot: () => [],
    obey() {},
    close() {},
  };
}
