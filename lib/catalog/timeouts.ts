/** How long each phase of an upstream's answer may take: by upstream, and by model and target where those differ. */
import { z } from "zod";

const milliseconds = z.number().int().min(1);

/** Each phase, with what it is and its usual length. */
const PHASES = {
  connect_ms: { usual: 5_000, about: "Longest wait for a connection, in milliseconds" },
  first_byte_ms: { usual: 120_000, about: "Longest wait for a streamed answer to begin, in milliseconds" },
  idle_ms: { usual: 120_000, about: "Longest pause within an answer, in milliseconds" },
  total_ms: { usual: 1_800_000, about: "Longest time for a whole answer, in milliseconds" },
  images_total_ms: { usual: 900_000, about: "Longest time for a request for images, in milliseconds" },
} as const;

function usually({ usual, about }: { usual: number; about: string }): z.ZodDefault<typeof milliseconds> {
  return milliseconds.default(usual).describe(about);
}

function instead({ about }: { about: string }): z.ZodOptional<typeof milliseconds> {
  return milliseconds.optional().describe(about);
}

/** The phases of an upstream. */
export const timeoutsSchema = z.strictObject({
  connect_ms: usually(PHASES.connect_ms),
  first_byte_ms: usually(PHASES.first_byte_ms),
  idle_ms: usually(PHASES.idle_ms),
  total_ms: usually(PHASES.total_ms),
  images_total_ms: usually(PHASES.images_total_ms),
});

/** Those in which a model, or one of its targets, differs from its upstream. */
export const ownTimeoutsSchema = z.strictObject({
  connect_ms: instead(PHASES.connect_ms),
  first_byte_ms: instead(PHASES.first_byte_ms),
  idle_ms: instead(PHASES.idle_ms),
  total_ms: instead(PHASES.total_ms),
  images_total_ms: instead(PHASES.images_total_ms),
});

/** Those that differ from an upstream's. */
export type OwnTimeouts = z.output<typeof ownTimeoutsSchema>;

/** Something that may differ from its upstream. */
export interface Timed {
  timeouts?: OwnTimeouts | undefined;
}

/** What a model and its target say themselves: the target's word counts. */
export function ownTimeouts({ model, target }: { model: Timed; target: Timed }): OwnTimeouts {
  return { ...model.timeouts, ...target.timeouts };
}
