/** The log: one JSON object per line. */
import type { LogEntry } from "../gateway.ts";

/** Makes a log that writes lines with the time of their event. */
export function createLog(
  { write, now }: { write: (line: string) => void; now: () => number },
): (entry: LogEntry) => void {
  return (entry) => write(`${JSON.stringify({ time: new Date(now()).toISOString(), ...entry })}\n`);
}
