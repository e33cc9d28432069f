/** Writes text to standard output and standard error, synchronously, so that nothing is lost when the process exits. */
export { counted } from "../text.ts";
import { redactWholeSecrets } from "../redact.ts";
import { type Invocation, UsageError } from "./arguments.ts";

/** Format of a report. */
export type Format = "json" | "csv" | "table";

/** Returns the format that the flags choose. @throws {UsageError} if they choose two */
export function formatOf(switches: Invocation["switches"]): Format {
  if (switches.has("json") && switches.has("csv")) throw new UsageError("Expected --json or --csv, not both");
  if (switches.has("json")) return "json";
  return switches.has("csv") ? "csv" : "table";
}

/** Returns a value as indented JSON. */
export function jsonText(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** The failure to write the result, after which no more of it is written; `undefined`: everything was written. */
let failure: unknown;

/** Writes to standard output, which is for the result of a command. */
export function writeOut(text: string): void {
  failure ??= writeAll(Deno.stdout, text);
}

/** Returns why the result could not be written; `undefined` if it was. `BrokenPipe`: its reader wants no more of it. */
export function outputFailure(): unknown {
  return failure;
}

/** Writes to standard error, which is for problems, notes and the log. */
export function writeErr(text: string): void {
  writeAll(Deno.stderr, text);
}

function writeAll(stream: { writeSync(bytes: Uint8Array): number }, text: string): unknown {
  let bytes = new TextEncoder().encode(redactWholeSecrets(text));
  try {
    while (bytes.length > 0) bytes = bytes.subarray(stream.writeSync(bytes));
    return undefined;
  } catch (error) {
    // The program continues without the output: a gateway must not end because the reader of its output has ended.
    return error;
  }
}
