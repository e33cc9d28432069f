/** Describes an exception for the log. */
import { faultOf, pathOf } from "../causes.ts";

/**
 * Returns the name, kind and stack of an exception for the log. The message is left out, because engines quote their
 * input in it, which may be a prompt or a key.
 */
export function describeCause(cause: unknown): { cause?: string; fault?: string; path?: string; stack?: string } {
  if (cause === undefined) return {};
  // A string instead of an error is text of an upstream.
  if (!(cause instanceof Error)) return { cause: "Error" };
  const [fault, path] = [faultOf(cause), pathOf(cause)];
  const frames = cause.stack?.split("\n").filter((line) => /^ {4}at /.test(line)).slice(0, 8).map((line) =>
    line.trim()
  );
  return {
    cause: cause.name,
    ...(fault !== undefined && { fault }),
    ...(path !== undefined && { path }),
    ...(frames !== undefined && { stack: frames.join(" | ") }),
  };
}
