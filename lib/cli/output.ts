/** Text for the console. Written at once and in whole, also when the process is about to end. */
import { redactWholeSecrets } from "../redact.ts";

/** Writes to standard output: what the command was asked for. */
export function writeOut(text: string): void {
  writeAll(Deno.stdout, text);
}

/** Writes to standard error: what went wrong, and the log. */
export function writeErr(text: string): void {
  writeAll(Deno.stderr, text);
}

function writeAll(stream: { writeSync(bytes: Uint8Array): number }, text: string): void {
  let bytes = new TextEncoder().encode(redactWholeSecrets(text));
  try {
    while (bytes.length > 0) bytes = bytes.subarray(stream.writeSync(bytes));
  } catch {
    // The reader has closed the pipe, or the disk is full. The gateway goes on without the output.
  }
}
