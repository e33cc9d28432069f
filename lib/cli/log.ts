/** The log: one JSON object per line, of bounded length, written without blocking. */
import type { LogEntry } from "../log_events.ts";
import { redactWholeSecrets } from "../redact.ts";

/** Levels from the least to the most urgent. */
const LEVELS = ["info", "warn", "error"] as const;

/** Longest value of one fact, in UTF-16 units; longer ones are cut and marked with `...`. */
const MAX_UNITS = 4_096;

/** Lines that wait for their reader, in UTF-16 units. Lines beyond it are dropped and counted. */
const MAX_WAITING = 8_388_608;

/** Longest wait for the last lines to be written at the end of the process, in milliseconds. */
const FLUSH_MS = 1_000;

/** Characters that JSON leaves unescaped although terminals or line readers may interpret them. */
const UNSAFE = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Parts of a log. */
export interface LogOptions {
  write: (line: string) => void;
  /** Unix time in milliseconds. */
  now: () => number;
  /** Lines below it are not written; asked for each. Absent: all are. */
  level?: () => LogEntry["level"];
}

/** Makes a log that writes lines with the time of their event. */
export function createLog({ write, now, level = () => "info" }: LogOptions): (entry: LogEntry) => void {
  return (entry) => {
    if (LEVELS.indexOf(entry.level) < LEVELS.indexOf(level())) return;
    // Lines about successes are most of the log and hold no text of an upstream, which might contain a secret.
    const isOwn = entry.level === "info" && entry.kind === undefined;
    const plain = isOwn ? JSON.stringify(entry) : "";
    // In a line this short no value is longer. With a replacer JSON.stringify takes twice the time.
    const facts = isOwn && plain.length <= MAX_UNITS
      ? plain
      : JSON.stringify(entry, isOwn ? bounded : boundedAndRedacted);
    const text = `{"time":"${new Date(now()).toISOString()}",${facts.slice(1)}`;
    write(`${text.replace(UNSAFE, escapeUnit)}\n`);
  };
}

function bounded(_name: string, value: unknown): unknown {
  return typeof value === "string" && value.length > MAX_UNITS ? `${value.slice(0, MAX_UNITS)}...` : value;
}

function boundedAndRedacted(name: string, value: unknown): unknown {
  return bounded(name, typeof value === "string" ? redactWholeSecrets(value) : value);
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** Lines on their way to where a log is written. */
export interface LogWriter {
  /** Takes a line. Never waits and never throws. */
  write(line: string): void;
  /** Lines that were lost, as they were not read fast enough or not at all. */
  readonly lost: number;
  /** Resolves when all lines are written, or after a second. */
  flush(): Promise<void>;
}

/**
 * Writes lines in batches: lines that arrive during a write go with the next one. A slow reader delays nothing; lines
 * for a closed one are lost.
 */
export function createLogWriter(
  stream: { write(bytes: Uint8Array): Promise<number> },
  { maxWaiting = MAX_WAITING, flushMs = FLUSH_MS }: { maxWaiting?: number; flushMs?: number } = {},
): LogWriter {
  const encoder = new TextEncoder();
  let waiting: string[] = [];
  let units = 0;
  let lost = 0;
  let reported = 0;
  let writing: Promise<void> | undefined;

  async function drain(): Promise<void> {
    // The lines of one turn of the event loop go together.
    await Promise.resolve();
    while (waiting.length > 0) {
      const lines = waiting;
      waiting = [];
      units = 0;
      if (lost > reported) {
        lines.push(`${JSON.stringify({ level: "warn", event: "log_lines_lost", lines: lost - reported })}\n`);
      }
      reported = lost;
      try {
        let bytes = encoder.encode(lines.join(""));
        while (bytes.length > 0) bytes = bytes.subarray(await stream.write(bytes));
      } catch {
        // The reader has closed the pipe, or the disk is full. The gateway goes on without its log.
        lost += lines.length;
      }
    }
    writing = undefined;
  }

  return {
    write(line) {
      if (units + line.length > maxWaiting) {
        lost++;
        return;
      }
      waiting.push(line);
      units += line.length;
      writing ??= drain();
    },
    get lost() {
      return lost;
    },
    async flush() {
      if (writing === undefined) return;
      const late = Promise.withResolvers<void>();
      const timer = setTimeout(late.resolve, flushMs);
      await Promise.race([writing, late.promise]);
      clearTimeout(timer);
    },
  };
}
