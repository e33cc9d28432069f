/** Describes an exception for the log. */
import { faultOf, pathOf } from "../causes.ts";

/**
 * Returns the name, kind and code position of an exception. The message is left out: engines quote their input in it,
 * and the input is a prompt or a key.
 */
export function describeCause(cause: unknown): { cause?: string; fault?: string; path?: string; stack?: string } {
  if (cause === undefined) return {};
  // A text in the place of an error is an upstream's own words.
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
