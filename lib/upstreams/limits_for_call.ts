/** Time limits of one call. */
import { ownTimeouts, type Timed } from "../catalog/timeouts.ts";
import type { TimeLimits } from "./transport.ts";

/** Returns the upstream's limits, overridden by those of the model and the target. */
export function limitsFor(
  call: { model: Timed; target: Timed },
  limits: TimeLimits,
  makes: "image" | "text",
): TimeLimits {
  if (call.model.timeouts === undefined && call.target.timeouts === undefined) return limits;
  const own = ownTimeouts(call);
  return {
    connectMs: own.connect_ms ?? limits.connectMs,
    firstByteMs: own.first_byte_ms ?? limits.firstByteMs,
    idleMs: own.idle_ms ?? limits.idleMs,
    totalMs: (makes === "image" ? own.images_total_ms : own.total_ms) ?? limits.totalMs,
  };
}
