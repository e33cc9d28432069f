/** The log: one JSON object per line, with values of bounded length, written without blocking. */
import { settlesWithin } from "../abort.ts";
import type { LogEntry } from "../log_events.ts";
import { redactWholeSecrets } from "../redact.ts";

/** Levels, the least urgent first. */
const LEVELS = ["info", "warn", "error"] as const;

/** Longest value of a fact, in UTF-16 code units. Longer ones are cut and end with `...`. */
const MAX_VALUE_UNITS = 4_096;

/**
 * Largest size of the lines that wait for their reader, in UTF-16 code units. Further lines are dropped and counted.
 */
const MAX_WAITING_UNITS = 8_388_608;

/** Longest wait for the last lines to be written, at the end of the process, in milliseconds. */
const FLUSH_MS = 1_000;

/** Characters that JSON does not escape, although terminals or line readers may interpret them. */
const UNSAFE = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Parts of a log. */
export interface LogOptions {
  write: (line: string) => void;
  /** Unix time in milliseconds. */
  now: () => number;
  /** Returns the lowest level that is written; it is called for each line. Absent: `info`. */
  level?: () => LogEntry["level"];
}

/** Creates a log whose lines begin with the time. */
export function createLog({ write, now, level = () => "info" }: LogOptions): (entry: LogEntry) => void {
  return (entry) => {
    if (LEVELS.indexOf(entry.level) < LEVELS.indexOf(level())) return;
    // Most lines report success. They contain no text of an upstream, which may contain a secret, so they need no
    // redaction.
    const isSuccess = entry.level === "info" && entry.kind === undefined;
    const json = isSuccess ? JSON.stringify(entry) : "";
    // No value in a short line is too long. The check of values with a replacer doubles the time of `JSON.stringify`.
    const facts = isSuccess && json.length <= MAX_VALUE_UNITS
      ? json
      : JSON.stringify(entry, isSuccess ? bounded : boundedAndRedacted);
    const text = `{"time":"${new Date(now()).toISOString()}",${facts.slice(1)}`;
    write(`${text.replace(UNSAFE, escapeUnit)}\n`);
  };
}

function bounded(_name: string, value: unknown): unknown {
  return typeof value === "string" && value.length > MAX_VALUE_UNITS ? `${value.slice(0, MAX_VALUE_UNITS)}...` : value;
}

function boundedAndRedacted(name: string, value: unknown): unknown {
  return bounded(name, typeof value === "string" ? redactWholeSecrets(value) : value);
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** Code of the line feed. */
const NEWLINE = 10;

function countLines(bytes: Uint8Array): number {
  return bytes.reduce((count, byte) => byte === NEWLINE ? count + 1 : count, 0);
}

/** Writes lines of a log in the background. */
export interface LogWriter {
  /** Queues a line. Never waits and never throws. */
  write(line: string): void;
  /** Number of lines that were lost because the reader was too slow or gone, or the disk full. */
  readonly lost: number;
  /** Resolves when all lines are written, or after one second. */
  flush(): Promise<void>;
}

/**
 * Creates a writer that writes lines in batches: lines that arrive during a write are written together next. A slow
 * reader delays nothing; lines for a closed one are lost.
 */
export function createLogWriter(
  stream: { write(bytes: Uint8Array): Promise<number> },
  { maxWaitingUnits = MAX_WAITING_UNITS, flushMs = FLUSH_MS }: { maxWaitingUnits?: number; flushMs?: number } = {},
): LogWriter {
  const encoder = new TextEncoder();
  let waiting: string[] = [];
  let waitingUnits = 0;
  let lost = 0;
  let reportedLost = 0;
  /** True if the last bytes that were written are not a whole line. */
  let isTorn = false;
  let writing: Promise<void> | undefined;

  async function drain(): Promise<void> {
    // Lines that are logged in the same turn of the event loop are written together.
    await Promise.resolve();
    while (waiting.length > 0) {
      const lines = waiting;
      waiting = [];
      waitingUnits = 0;
      const nowLost = lost;
      const isReport = nowLost > reportedLost;
      if (isReport) {
        const facts = { level: "warn", event: "log_lines_lost", lines: nowLost - reportedLost };
        lines.push(`${JSON.stringify({ time: new Date().toISOString(), ...facts })}\n`);
      }
      const bytes = encoder.encode(`${isTorn ? "\n" : ""}${lines.join("")}`);
      let written = 0;
      try {
        while (written < bytes.length) written += await stream.write(bytes.subarray(written));
        reportedLost = nowLost;
      } catch {
        // The reader has closed the pipe, or the disk is full. The gateway continues without its log.
        const rest = bytes.subarray(written);
        lost += countLines(rest) - (isReport ? 1 : 0) - (isTorn && written === 0 ? 1 : 0);
      }
      if (written > 0) isTorn = bytes[written - 1] !== NEWLINE;
    }
    writing = undefined;
  }

  return {
    write(line) {
      if (waitingUnits + line.length > maxWaitingUnits) {
        lost++;
        return;
      }
      waiting.push(line);
      waitingUnits += line.length;
      writing ??= drain();
    },
    get lost() {
      return lost;
    },
    async flush() {
      if (writing !== undefined) await settlesWithin(flushMs, writing);
    },
  };
}
