/** Headers of streamed answers. */

/** These and those of a stream of server-sent events. */
export function streamHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  return {
    ...headers,
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    // Tells nginx and its kin to pass events on as they come.
    "x-accel-buffering": "no",
  };
}
