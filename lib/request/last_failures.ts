/** The last failure of each target, for operators. Nothing decides by it. */
import type { GatewayError } from "../errors.ts";
import type { Health, TargetKey } from "../routing/health.ts";
import { targetName } from "../routing/health.ts";
import { plainText } from "../text.ts";

/** Most targets that are remembered; those that failed longest ago go first. */
const MOST_TARGETS = 1_000;

/** Most UTF-16 code units of a message. */
const MESSAGE_CHARACTERS = 300;

/** A failure of a target. The log has the same facts as `target_failed`: nothing of a prompt or an answer. */
export interface TargetFailure {
  /** Unix time in milliseconds. */
  at: number;
  /** HTTP status of the vendor; absent: it did not answer. */
  status?: number;
  /** The vendor's message, or the gateway's where the vendor did not answer. */
  message: string;
}

/** By the name of the target. What keeps the health of targets outlives a configuration. */
const failures = new WeakMap<Health, Map<string, TargetFailure>>();

/** Remembers a failure. @param now Unix time in milliseconds */
export function recordFailure(health: Health, target: TargetKey, error: GatewayError, now: number): void {
  const known = failures.get(health) ?? new Map<string, TargetFailure>();
  failures.set(health, known);
  const { vendor } = error;
  const name = targetName(target);
  known.delete(name);
  known.set(name, {
    at: now,
    ...(vendor !== undefined && { status: vendor.status }),
    message: plainText(vendor?.message ?? error.message, MESSAGE_CHARACTERS),
  });
  const [oldest] = known.keys();
  if (known.size > MOST_TARGETS && oldest !== undefined) known.delete(oldest);
}

/** The last failure of a target since the start of this process. */
export function lastFailure(health: Health, target: TargetKey): TargetFailure | undefined {
  return failures.get(health)?.get(targetName(target));
}
