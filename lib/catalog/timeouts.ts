/**
 * The schema of timeouts for the phases of an upstream request: of an upstream, and exceptions of models and targets.
 */
import { z } from "zod";

/** A duration in milliseconds, at most 23 days: timers of the runtime end at once from 25 days on. */
export const milliseconds = z.number().int().max(2_000_000_000);

/** Defaults, in milliseconds, and descriptions. */
const PHASES = {
  connect_ms: { byDefault: 5_000, about: "Maximum wait for a connection, in milliseconds" },
  first_byte_ms: { byDefault: 120_000, about: "Maximum wait for the first byte of a streamed answer, in milliseconds" },
  idle_ms: { byDefault: 120_000, about: "Maximum pause within an answer, in milliseconds" },
  total_ms: { byDefault: 1_800_000, about: "Maximum time for a whole answer, in milliseconds" },
  images_total_ms: {
    byDefault: 900_000,
    about: "Maximum time for an image request, in milliseconds. `images.total_ms` applies, too",
  },
} as const;

function required({ byDefault, about }: { byDefault: number; about: string }): z.ZodDefault<typeof milliseconds> {
  return milliseconds.min(1).default(byDefault).describe(about);
}

function optional({ byDefault, about }: { byDefault: number; about: string }): z.ZodOptional<typeof milliseconds> {
  return milliseconds.min(1).optional().describe(about).meta({ examples: [byDefault] });
}

/** Timeouts of an upstream. */
export const timeoutsSchema = z.strictObject({
  connect_ms: required(PHASES.connect_ms),
  first_byte_ms: required(PHASES.first_byte_ms),
  idle_ms: required(PHASES.idle_ms),
  total_ms: required(PHASES.total_ms),
  images_total_ms: required(PHASES.images_total_ms),
});

/** Timeouts of a model or target that differ from its upstream's. */
export const ownTimeoutsSchema = z.strictObject({
  connect_ms: optional(PHASES.connect_ms),
  first_byte_ms: optional(PHASES.first_byte_ms),
  idle_ms: optional(PHASES.idle_ms),
  total_ms: optional(PHASES.total_ms),
  images_total_ms: optional(PHASES.images_total_ms),
});

/** Timeouts that differ from an upstream's. */
export type OwnTimeouts = z.output<typeof ownTimeoutsSchema>;

/** A model or target with timeouts of its own. */
export interface Timed {
  timeouts?: OwnTimeouts | undefined;
}

/** Merges the timeouts of a model and its target. The target's take precedence. */
export function ownTimeouts({ model, target }: { model: Timed; target: Timed }): OwnTimeouts {
  return { ...model.timeouts, ...target.timeouts };
}
