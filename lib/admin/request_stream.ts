/** `GET /admin/v1/requests/stream`: follows the ledger with server-sent events. */
import { delay } from "../abort.ts";
import { RequestTail, TAIL_PARAMETERS } from "../billing/reports/request_tail.ts";
import { GatewayError } from "../errors.ts";
import { stopping } from "../server/drain.ts";
import type { RouteContext } from "../server/router.ts";
import { formatFrame } from "../server/sse.ts";
import { streamHeaders } from "../server/json_response.ts";
import { readQuery, runReport } from "./request_input.ts";

/** Largest number of concurrent streams of a process. Each one reads every new entry. */
const MAX_STREAMS = 20;

/** Pause between two reads of new entries, in milliseconds. */
const POLL_MS = 1_000;

/** Silence after which a keep-alive is sent, in milliseconds. Proxies often close connections silent for a minute. */
const KEEP_ALIVE_MS = 15_000;

/** Longest duration of a stream, in milliseconds. Its client reconnects, and must still have a valid key. */
const MAX_STREAM_MS = 3_600_000;

/** Pause before a client reconnects, in milliseconds. */
const RETRY_MS = 2_000;

/**
 * Streams requests as they are entered in the ledger: an event `request` for each, with its sequence number as the id.
 * `Last-Event-ID`, which browsers send when they reconnect, takes precedence over `after_seq`.
 * @throws {GatewayError} `invalid` for parameters that cannot be read; `limited` if too many streams are open; an error
 * of `stopping()` if the gateway is shutting down
 */
export async function streamRequests(request: Request, context: RouteContext): Promise<Response> {
  const { gateway: { store: { ledger, keys }, config, monotonic }, drain, isStillOperator } = context;
  if (isStillOperator === undefined) throw new TypeError("Cannot stream requests: this route is not for operators");
  const texts = readQuery(request, TAIL_PARAMETERS);
  const lastId = request.headers.get("last-event-id") ?? "";
  const after = lastId === "" ? {} : { after_seq: lastId };
  if (drain.phase !== "serving") throw stopping();
  if (drain.connections("stream") >= MAX_STREAMS) {
    throw new GatewayError("limited", `Cannot open another stream: ${MAX_STREAMS} are open`, {
      retryAfterMs: RETRY_MS,
    });
  }
  const ended = new AbortController();
  const end = () => ended.abort();
  // The stream is counted before anything is awaited, so that concurrent requests cannot exceed the limit.
  const disconnect = drain.connect("stream", end);
  try {
    const tail = await runReport(() => RequestTail.open({ ledger, keys, config }, { ...texts, ...after }));
    const signal = AbortSignal.any([ended.signal, request.signal]);
    const events = textsOf(tail, { signal, monotonic, isStillOperator });
    return new Response(streamOf(events, { end, disconnect }), {
      headers: streamHeaders({ "cache-control": "no-store" }),
    });
  } catch (error) {
    disconnect();
    throw error;
  }
}

/**
 * Yields the text of the stream until it has lasted too long, the operator is signed out or the key has changed, or the
 * signal is aborted. Never throws.
 */
async function* textsOf(
  tail: RequestTail,
  { signal, monotonic, isStillOperator }: {
    signal: AbortSignal;
    monotonic: () => number;
    isStillOperator: () => Promise<boolean>;
  },
): AsyncGenerator<string> {
  const startedAt = monotonic();
  let sentAt = startedAt;
  // The id lets a client that is disconnected before its first event resume at the same entry.
  yield `retry: ${RETRY_MS}\nid: ${tail.seq}\n\n`;
  while (!signal.aborted && monotonic() - startedAt < MAX_STREAM_MS && await isStillOperator()) {
    // While the store is unreachable, the stream sends no requests. It continues when the store is back.
    const { requests, isEnd } = await tail.read().catch(() => ({ requests: [], isEnd: true }));
    if (requests.length > 0 || monotonic() - sentAt >= KEEP_ALIVE_MS) {
      sentAt = monotonic();
      // An event without data only sets the client's last event id and is not dispatched (WHATWG HTML, 9.2.6).
      yield requests.map((line) => `id: ${line.seq}\n${formatFrame({ event: "request", data: JSON.stringify(line) })}`)
        .join("") + `id: ${tail.seq}\n\n`;
    }
    if (isEnd) await delay(POLL_MS, signal).catch(() => {});
  }
}

/**
 * Returns texts as a body. `disconnect` is called when the stream ends, and `end` before that if the client cancels it.
 */
function streamOf(
  texts: AsyncGenerator<string>,
  { end, disconnect }: { end: () => void; disconnect: () => void },
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await texts.next();
      if (done !== true) return controller.enqueue(encoder.encode(value));
      disconnect();
      controller.close();
    },
    cancel() {
      end();
      disconnect();
    },
  });
}
