/** The clock of this machine against those of the upstreams. */
import { createNotes, type Finding } from "./finding.ts";

/** More than this is told, in milliseconds. */
const MOST_MS = 5_000;

/** Looks at how far others are ahead of us, in milliseconds. One that differs alone is wrong itself. */
export function checkClock(ahead: readonly number[]): Finding[] {
  const notes = createNotes("clock");
  const [middle] = [...ahead].sort((a, b) => a - b).slice(Math.floor((ahead.length - 1) / 2));
  if (middle === undefined) return notes.found;
  const text = `${(Math.abs(middle) / 1000).toFixed(1)} s ${middle > 0 ? "behind" : "ahead of"} the upstreams`;
  if (Math.abs(middle) > MOST_MS) {
    notes.warn(
      `This machine's clock is ${text}`,
      "Let it be set over the network: limits, budgets and expiries of keys go by it",
    );
  } else notes.ok(`It agrees with the upstreams (${ahead.length} asked)`);
  return notes.found;
}
