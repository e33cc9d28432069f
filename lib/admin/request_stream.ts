/** A live tail of the ledger over server-sent events. */
import { delay } from "../abort.ts";
import { RequestTail, TAIL_PARAMETERS } from "../billing/reports/request_tail.ts";
import { GatewayError } from "../errors.ts";
import { shutdownError } from "../server/drain.ts";
import type { RouteContext } from "../server/router.ts";
import { formatFrame } from "../server/sse.ts";
import { streamHeaders } from "../server/json_response.ts";
import { readQuery, runReport } from "./request_input.ts";

/** Maximum number of concurrent streams of a process: each one reads every new entry. */
const MAX_STREAMS = 20;

/** Pause between two reads of new requests, in milliseconds. */
const POLL_MS = 1_000;

/** Silence before a keep-alive, in milliseconds: proxies close connections that are silent for a minute. */
const KEEP_ALIVE_MS = 15_000;

/** Longest stream, in milliseconds. After it the client reconnects, and is authorized again. */
const LONGEST_MS = 3_600_000;

/** Pause of a client before it reconnects, in milliseconds. */
const RETRY_MS = 2_000;

/**
 * Streams requests as they are entered: one `request` event each, with the entry's sequence number as its id.
 * `Last-Event-ID`, which browsers send when they reconnect, takes precedence over `after_seq`.
 * @throws {GatewayError} `invalid` for parameters that cannot be read, `limited` if too many streams are open
 */
export async function streamRequests(request: Request, context: RouteContext): Promise<Response> {
  const { gateway: { store: { ledger, keys }, config, monotonic }, drain, isStillOperator } = context;
  if (isStillOperator === undefined) throw new TypeError("Cannot stream requests: this route is not for operators");
  const texts = readQuery(request, TAIL_PARAMETERS);
  const lastId = request.headers.get("last-event-id") ?? "";
  const after = lastId === "" ? {} : { after_seq: lastId };
  if (drain.phase !== "serving") throw shutdownError();
  if (drain.connections("stream") >= MAX_STREAMS) {
    throw new GatewayError("limited", `Cannot open another stream: ${MAX_STREAMS} are open`, {
      retryAfterMs: RETRY_MS,
    });
  }
  const ended = new AbortController();
  const end = () => ended.abort();
  // Counted before the first `await`, so that concurrent requests cannot exceed the maximum.
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
 * Yields the text of the stream until its longest time has passed, the operator's credential is no longer valid, or
 * `signal` aborts. Never throws.
 */
async function* textsOf(
  tail: RequestTail,
  { signal, monotonic, isStillOperator }: {
    signal: AbortSignal;
    monotonic: () => number;
    isStillOperator: () => Promise<boolean>;
  },
): AsyncGenerator<string> {
  const begun = monotonic();
  let sentAt = begun;
  // This id is where the tail begins, for a client that reconnects before its first event.
  yield `retry: ${RETRY_MS}\nid: ${tail.seq}\n\n`;
  while (!signal.aborted && monotonic() - begun < LONGEST_MS && await isStillOperator()) {
    // While the store is unreachable there are no new entries; the stream continues when the store is back.
    const { requests, isEnd } = await tail.read().catch(() => ({ requests: [], isEnd: true }));
    if (requests.length > 0 || monotonic() - sentAt >= KEEP_ALIVE_MS) {
      sentAt = monotonic();
      // An event without data updates the client's last event id and is not dispatched (WHATWG HTML, 9.2.6).
      yield requests.map((line) => `id: ${line.seq}\n${formatFrame({ event: "request", data: JSON.stringify(line) })}`)
        .join("") + `id: ${tail.seq}\n\n`;
    }
    if (isEnd) await delay(POLL_MS, signal).catch(() => {});
  }
}

/** Returns texts as a body. Calls `disconnect` when it ends; calls `end`, too, if the client disconnects. */
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
