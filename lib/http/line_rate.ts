/** Log lines that strangers can cause: so many in a minute, and then a number. */
import type { LogEntry } from "../gateway.ts";

/** Lines within a window. */
const MOST_LINES = 60;

/** Length of a window, in milliseconds. */
const WINDOW_MS = 60_000;

/** Writes a line while there is room in the window; the first of the next one tells how many were left out. */
export type RatedLog = (entry: LogEntry, log: (entry: LogEntry) => void) => void;

/** Starts a window with the first line. `monotonic`: milliseconds that only grow. */
export function createRatedLog({ monotonic }: { monotonic: () => number }): RatedLog {
  let since = -Infinity;
  let lines = 0;
  return (entry, log) => {
    if (monotonic() - since >= WINDOW_MS) {
      if (lines > MOST_LINES) log({ level: "warn", event: "lines_left_out", count: lines - MOST_LINES });
      since = monotonic();
      lines = 0;
    }
    if (++lines <= MOST_LINES) log(entry);
  };
}
