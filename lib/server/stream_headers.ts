/** Headers of streamed answers. */

/** These and those of a stream of server-sent events. */
export function streamHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  return {
    ...headers,
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    // nginx and similar proxies pass events on at once with this header.
    "x-accel-buffering": "no",
  };
}
