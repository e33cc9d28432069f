/** The time limits of one call. */
import { ownTimeouts, type Timed } from "../catalog/timeouts.ts";
import type { TimeLimits } from "./transport.ts";

/** An upstream's limits for a call, with what its model and its target say otherwise. */
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
