/** Log lines that strangers can cause: so many in a minute, and then a number. */
import type { LogEntry } from "../log_events.ts";

/** Length of a window, in milliseconds. */
const WINDOW_MS = 60_000;

/** Writes a line while the window has room. The first line of the next window says how many were left out. */
export type RatedLog = (entry: LogEntry, log: (entry: LogEntry) => void) => void;

/** Starts a window with the first line. `most`: lines in a window; `monotonic`: milliseconds that only grow. */
export function createRatedLog({ monotonic, most }: { monotonic: () => number; most: number }): RatedLog {
  let since = -Infinity;
  let lines = 0;
  return (entry, log) => {
    if (monotonic() - since >= WINDOW_MS) {
      if (lines > most) log({ level: "warn", event: "log_lines_suppressed", count: lines - most, of: entry.event });
      since = monotonic();
      lines = 0;
    }
    if (++lines <= most) log(entry);
  };
}
