/** Writes text to standard output and standard error, synchronously, so that nothing is lost when the process exits. */
export { counted } from "../text.ts";
import { redactWholeSecrets } from "../redact.ts";
import { type Invocation, UsageError } from "./arguments.ts";

/** Format of a report. */
export type Format = "json" | "csv" | "table";

/** Returns the format that the flags choose. @throws {UsageError} if they choose two */
export function formatOf(switches: Invocation["switches"]): Format {
  if (switches.has("json") && switches.has("csv")) throw new UsageError("Expected --json or --csv, not both");
  return switches.has("json") ? "json" : switches.has("csv") ? "csv" : "table";
}

/** Returns a value as indented JSON. */
export function jsonText(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** Writes to standard output, which is for the result of a command. */
export function writeOut(text: string): void {
  writeAll(Deno.stdout, text);
}

/** Writes to standard error, which is for problems, notes and the log. */
export function writeErr(text: string): void {
  writeAll(Deno.stderr, text);
}

function writeAll(stream: { writeSync(bytes: Uint8Array): number }, text: string): void {
  let bytes = new TextEncoder().encode(redactWholeSecrets(text));
  try {
    while (bytes.length > 0) bytes = bytes.subarray(stream.writeSync(bytes));
  } catch {
    // The reader has closed the pipe, or the disk is full. The program continues without the output.
  }
}
