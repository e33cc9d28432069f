/** A fake upstream: a real server that answers by a script and records its requests. */

/** A part of a body: what to send, or something to wait for. */
export type Step = string | Uint8Array<ArrayBuffer> | Promise<unknown>;

/** One answer. Its type is JSON where `headers` has none; that of `steps` for a request for a stream is events. */
export interface ScriptedAnswer {
  status?: number;
  headers?: Record<string, string>;
  /** The body's text or bytes. */
  body?: string | Uint8Array<ArrayBuffer>;
  /** Number of times that the body is sent; absent: once. Each part is made only when it is read. */
  times?: number;
  /** Bytes per write; absent: all at once. */
  chunkBytes?: number;
  /** Breaks the connection off after this many bytes. */
  cutAfterBytes?: number;
  /** Waits for this before the answer's head, or before its last write. */
  before?: Promise<unknown>;
  beforeLast?: Promise<unknown>;
  /** A body that is made while it is sent, in place of `body`. */
  steps?: Iterable<Step>;
  /** True: the connection breaks off after the steps. */
  cut?: boolean;
}

/** One request as it arrived. */
export class UpstreamRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly headers: Headers;
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Bytes of the answer's body that were handed to the connection so far. */
  sent = 0;
  /** Resolves when the caller has left before the answer's end. */
  readonly gone: Promise<void>;
  #body: string | undefined;

  constructor({ method, url, headers }: Request, bytes: Uint8Array<ArrayBuffer>, gone: Promise<void>) {
    this.method = method;
    this.path = url.slice(url.indexOf("/", 8));
    this.headers = headers;
    this.bytes = bytes;
    this.gone = gone;
  }

  /** The body's text. */
  get body(): string {
    return this.#body ??= new TextDecoder().decode(this.bytes);
  }

  // deno-lint-ignore no-explicit-any
  get json(): Record<string, any> {
    return JSON.parse(this.body);
  }

  /** The fields of a multipart body. */
  form(): Promise<FormData> {
    return new Response(this.bytes, { headers: { "content-type": this.headers.get("content-type") ?? "" } }).formData();
  }

  /** The body asks for a stream. */
  get stream(): boolean {
    return this.path.includes(":streamGenerateContent") || this.bytes.length > 0 && this.json.stream === true;
  }
}

/** A running server. */
export interface FakeUpstream extends AsyncDisposable {
  /** Such as `http://127.0.0.1:40123`. */
  url: string;
  requests: UpstreamRequest[];
  /** The callers' ports: one per connection. */
  ports: Set<number>;
}

/** The error of a body that breaks off. */
export const CUT = new Error("Cut by the script");

/** A server reports errors here: those of broken bodies are not printed. @throws any other */
export function onError(error: unknown): Response {
  if (error !== CUT) throw error;
  return new Response(null, { status: 500 });
}

/** Starts a server that answers each request with the result of `answer`. */
export function startUpstream(
  answer: (request: UpstreamRequest, index: number) => ScriptedAnswer | Response | Promise<ScriptedAnswer | Response>,
  tls: { cert?: string; key?: string } = {},
): FakeUpstream {
  const requests: UpstreamRequest[] = [];
  const ports = new Set<number>();
  /** A stopped server no longer waits, even after a failed test. */
  const closing = Promise.withResolvers<void>();
  const listen = { hostname: "127.0.0.1", port: 0, onListen: () => {}, onError, ...tls };
  const server = Deno.serve(listen, async (request, info) => {
    if (info.remoteAddr.transport === "tcp") ports.add(info.remoteAddr.port);
    const gone = Promise.withResolvers<void>();
    request.signal.addEventListener("abort", () => gone.resolve(), { once: true });
    const received = new UpstreamRequest(request, await request.bytes(), gone.promise);
    const script = await answer(received, requests.push(received) - 1);
    if (script instanceof Response) return script;
    await Promise.race([script.before, closing.promise]);
    const { status = 200, headers, steps } = script;
    const type = steps !== undefined && status === 200 && received.stream ? "text/event-stream" : "application/json";
    const ended = Promise.race([gone.promise, closing.promise]);
    return new Response(bodyOf(script, { received, ended, onCancel: gone.resolve }), {
      status,
      headers: headers ?? { "content-type": type },
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
export function events(text: string, more: ScriptedAnswer = {}): ScriptedAnswer {
  return { headers: { "content-type": "text/event-stream" }, body: text, ...more };
}

/** A script that answers one JSON value. */
export function json(value: unknown, more: ScriptedAnswer = {}): ScriptedAnswer {
  return { body: JSON.stringify(value), ...more };
}

const encoder = new TextEncoder();

/** The writes of a body that is known from the start. */
function* writesOf({ body = "", times = 1, chunkBytes, cutAfterBytes, beforeLast }: ScriptedAnswer): Iterable<Step> {
  const bytes = typeof body === "string" ? encoder.encode(body) : body;
  const end = Math.min(cutAfterBytes ?? Infinity, bytes.length * times);
  const step = chunkBytes ?? bytes.length;
  for (let at = 0; at < end;) {
    if (at + step >= end && beforeLast !== undefined) yield beforeLast;
    const from = at % bytes.length;
    const piece = bytes.slice(from, Math.min(from + step, from + end - at));
    at += piece.length;
    yield piece;
  }
}

function bodyOf(
  script: ScriptedAnswer,
  { received, ended, onCancel }: { received: UpstreamRequest; ended: Promise<void>; onCancel: () => void },
): ReadableStream<Uint8Array> | null {
  const { steps = writesOf(script), cut = script.cutAfterBytes !== undefined } = script;
  // Statuses such as 204 have no body at all.
  if (script.steps === undefined && (script.body ?? "").length === 0 && !cut) return null;
  const iterator = steps[Symbol.iterator]();
  return new ReadableStream({
    async pull(controller) {
      for (;;) {
        const { done, value } = iterator.next();
        if (done === true) return cut ? controller.error(CUT) : controller.close();
        if (value instanceof Promise) {
          await Promise.race([value, ended]);
          continue;
        }
        const bytes = typeof value === "string" ? encoder.encode(value) : value;
        received.sent += bytes.length;
        return controller.enqueue(bytes);
      }
    },
    cancel: onCancel,
  }, { highWaterMark: 0 });
}
