/** A real server that plays answers by a script and remembers what it was asked. */

/** One answer. */
export interface Script {
  status?: number;
  headers?: Record<string, string>;
  /** The body's text; a stream of events where `content-type` says so. */
  body: string;
  /** Bytes per write; absent: all at once. */
  chunkBytes?: number;
  /** Breaks the connection off after this many bytes. */
  cutAfterBytes?: number;
  /** Waits for this before the answer's head, or before its last write. */
  before?: Promise<unknown>;
  beforeLast?: Promise<unknown>;
}

/** One request as it arrived. */
export interface Played {
  method: string;
  /** Path and query. */
  path: string;
  headers: Headers;
  body: string;
  /** Resolves when the caller has gone before the answer's end. */
  gone: Promise<void>;
}

/** A running server. */
export interface Scripted extends AsyncDisposable {
  /** Such as `http://127.0.0.1:40123`. */
  url: string;
  requests: Played[];
}

/** Starts a server that answers each request with what `play` says. */
export function startScripted(play: (request: Played, index: number) => Script): Scripted {
  const requests: Played[] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
    const left = Promise.withResolvers<void>();
    const url = request.url.slice(request.url.indexOf("/", 8));
    const played: Played = {
      method: request.method,
      path: url,
      headers: request.headers,
      body: await request.text(),
      gone: left.promise,
    };
    requests.push(played);
    const script = play(played, requests.length - 1);
    request.signal.addEventListener("abort", () => left.resolve(), { once: true });
    await script.before;
    return new Response(stream(script, left.resolve), {
      status: script.status ?? 200,
      headers: script.headers ?? { "content-type": "application/json" },
    });
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}`,
    requests,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

/** A script that streams events. */
export function events(text: string, more: Partial<Script> = {}): Script {
  return { headers: { "content-type": "text/event-stream" }, body: text, ...more };
}

/** A script that answers one JSON value. */
export function json(value: unknown, more: Partial<Script> = {}): Script {
  return { body: JSON.stringify(value), ...more };
}

function stream(
  { body, chunkBytes, cutAfterBytes, beforeLast }: Script,
  onCancel: () => void,
): ReadableStream<Uint8Array> {
  const bytes = new TextEncoder().encode(body);
  const end = Math.min(cutAfterBytes ?? bytes.length, bytes.length);
  const step = chunkBytes ?? Math.max(1, bytes.length);
  let at = 0;
  return new ReadableStream({
    async pull(controller) {
      if (at + step >= end) await beforeLast;
      if (at < end) {
        controller.enqueue(bytes.slice(at, Math.min(at + step, end)));
        at += step;
      }
      if (at < end) return;
      if (cutAfterBytes !== undefined) controller.error(new Error("Cut by the script"));
      else controller.close();
    },
    cancel: onCancel,
  });
}
