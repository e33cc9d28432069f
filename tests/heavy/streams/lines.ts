/** A process that answers each input line with one output line. */

/**
 * Calls `answer` for each line of standard input, one after the other, and writes its result as a line. Ends with the
 * input.
 */
export async function answerLines(answer: (line: string) => Promise<unknown> | unknown): Promise<void> {
  let text = "";
  for await (const piece of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
    text += piece;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n")) {
      const line = text.slice(0, end);
      text = text.slice(end + 1);
      await writeLine(await answer(line));
    }
  }
}

/** Writes a value as a line of JSON. */
export async function writeLine(value: unknown): Promise<void> {
  const bytes = new TextEncoder().encode(`${JSON.stringify(value)}\n`);
  for (let at = 0; at < bytes.length;) at += await Deno.stdout.write(bytes.subarray(at));
}

/** Milliseconds since 1970 with decimals, the same in all processes of this machine. */
export function stamp(): number {
  return performance.timeOrigin + performance.now();
}
