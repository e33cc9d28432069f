/** The clock of this machine against those of the upstreams. */
import { createNotes, type Finding } from "./finding.ts";

/** Larger differences are reported, in milliseconds. */
const MAX_MS = 5_000;

/** Checks how far the upstreams' clocks are ahead, in milliseconds, by their median. */
export function checkClock(offsets: readonly number[]): Finding[] {
  const notes = createNotes("clock");
  const [middle] = [...offsets].sort((a, b) => a - b).slice(Math.floor((offsets.length - 1) / 2));
  if (middle === undefined) return notes.found;
  const text = `${(Math.abs(middle) / 1000).toFixed(1)} s ${middle > 0 ? "behind" : "ahead of"} the upstreams`;
  if (Math.abs(middle) > MAX_MS) {
    notes.warn(
      `This machine's clock is ${text}`,
      "Synchronize it over the network (NTP): limits, budgets and expiry of keys depend on it",
    );
  } else notes.ok(`The clock agrees with the upstreams (${offsets.length} asked)`);
  return notes.found;
}
