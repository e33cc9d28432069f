/** Compares the clock of this machine with the clocks of the upstreams. */
import { createNotes, type Finding } from "./finding.ts";

/** Largest difference that is not reported, in milliseconds. */
const MAX_DIFFERENCE_MS = 5_000;

/**
 * Reports the median difference if it is large.
 * @param ahead for each upstream, by how many milliseconds its clock is ahead of this machine's
 */
export function checkClock(ahead: readonly number[]): Finding[] {
  const notes = createNotes("clock");
  const [median] = [...ahead].sort((a, b) => a - b).slice(Math.floor((ahead.length - 1) / 2));
  if (median === undefined) return notes.found;
  const text = `${(Math.abs(median) / 1000).toFixed(1)} s ${median > 0 ? "behind" : "ahead of"} the upstreams`;
  if (Math.abs(median) > MAX_DIFFERENCE_MS) {
    notes.warn(
      `This machine's clock is ${text}`,
      "Synchronize it over the network (NTP): limits, budgets and expiry of keys depend on it",
    );
  } else notes.ok(`The clock agrees with the upstreams (${ahead.length} checked)`);
  return notes.found;
}
