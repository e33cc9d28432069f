/** A real server that plays answers by a script and remembers what it was asked. */

/** One answer. */
export interface Script {
  status?: number;
  headers?: Record<string, string>;
  /** The body's text or bytes; a stream of events where `content-type` says so. */
  body: string | Uint8Array<ArrayBuffer>;
  /** How often the body is sent; absent: once. Nothing is made before it is read. */
  times?: number;
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
  /** Bytes of the answer's body that were handed to the connection so far. */
  sent: number;
  /** Resolves when the caller has gone before the answer's end. */
  gone: Promise<void>;
}

/** A running server. */
export interface Scripted extends AsyncDisposable {
  /** Such as `http://127.0.0.1:40123`. */
  url: string;
  requests: Played[];
  /** The callers' ports: one per connection. */
  ports: Set<number>;
}

/** Starts a server that answers each request with what `play` says. */
export function startScripted(
  play: (request: Played, index: number) => Script,
  tls: { cert?: string; key?: string } = {},
): Scripted {
  const requests: Played[] = [];
  const ports = new Set<number>();
  /** A server that is stopped waits for nothing any more, also where a test has failed. */
  const closing = Promise.withResolvers<void>();
  const listen = { hostname: "127.0.0.1", port: 0, onListen: () => {}, ...tls };
  const server = Deno.serve(listen, async (request, info) => {
    if (info.remoteAddr.transport === "tcp") ports.add(info.remoteAddr.port);
    const left = Promise.withResolvers<void>();
    const url = request.url.slice(request.url.indexOf("/", 8));
    const played: Played = {
      method: request.method,
      path: url,
      headers: request.headers,
      body: await request.text(),
      sent: 0,
      gone: left.promise,
    };
    requests.push(played);
    const script = play(played, requests.length - 1);
    request.signal.addEventListener("abort", () => left.resolve(), { once: true });
    await Promise.race([script.before, closing.promise]);
    return new Response(stream(script, { played, onCancel: left.resolve, closing: closing.promise }), {
      status: script.status ?? 200,
      headers: script.headers ?? { "content-type": "application/json" },
    });
  });
  return {
    url: `${tls.cert === undefined ? "http" : "https"}://127.0.0.1:${server.addr.port}`,
    requests,
    ports,
    [Symbol.asyncDispose]() {
      closing.resolve();
      return server.shutdown();
    },
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
  { body, times = 1, chunkBytes, cutAfterBytes, beforeLast }: Script,
  { played, onCancel, closing }: { played: Played; onCancel: () => void; closing: Promise<void> },
): ReadableStream<Uint8Array> | null {
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  // Statuses such as 204 have no body at all.
  if (bytes.length === 0 && cutAfterBytes === undefined) return null;
  const end = Math.min(cutAfterBytes ?? bytes.length * times, bytes.length * times);
  const step = chunkBytes ?? Math.max(1, bytes.length);
  let at = 0;
  return new ReadableStream({
    async pull(controller) {
      if (at + step >= end) await Promise.race([beforeLast, closing]);
      if (at < end) {
        const from = at % bytes.length;
        const piece = bytes.slice(from, Math.min(from + step, from + end - at));
        controller.enqueue(piece);
        at += piece.length;
        played.sent = at;
      }
      if (at < end) return;
      if (cutAfterBytes !== undefined) controller.error(new Error("Cut by the script"));
      else controller.close();
    },
    cancel: onCancel,
  });
}
