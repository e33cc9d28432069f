/** What the log may know of an exception. */

/**
 * Name and place of what was thrown. Its message stays out: engines quote the input in it, and the input is a prompt or
 * a key.
 */
export function describeCause(cause: unknown): { cause?: string; stack?: string } {
  if (cause === undefined) return {};
  if (!(cause instanceof Error)) return { cause: typeof cause };
  const frames = cause.stack?.split("\n").filter((line) => /^ {4}at /.test(line)).slice(0, 8).map((line) =>
    line.trim()
  );
  return { cause: cause.name, ...(frames !== undefined && { stack: frames.join(" | ") }) };
}
