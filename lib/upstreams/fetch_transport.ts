/** A transport over `fetch`, for proxies and HTTP/2. */
import { GatewayError } from "../errors.ts";
import { abortable } from "../abort.ts";
import { PhaseTimers } from "../phase_timers.ts";
import { LARGE_BODY_BYTES, runSliced } from "../scheduler.ts";
import { encodeUtf8, utf8Decoder } from "../text.ts";
import { type HeaderFilter, joinPieces, RequestTimer, RESPONSE_HEADERS, type ResponseHeader } from "../http1/mod.ts";
import { createPinnedUrls } from "./pinned_urls.ts";
import { createHostProbes, type HostReachability } from "./reachability.ts";
import type { Incoming, TimeLimits, Transport, TransportOptions } from "./transport.ts";

/** Maximum number of bytes that are read of a released answer, so that its connection can be reused. */
const MAX_RELEASED_BYTES = 64 * 1024;
/** Longest time for which a released answer is read, in milliseconds. */
const MAX_RELEASED_MS = 1_000;

/** Minimum time for a probe, in milliseconds. If less of the connect limit is left, the limit starts again. */
const MIN_PROBE_MS = 100;

/** Options of a transport over `fetch`. */
export interface FetchOptions extends TransportOptions {
  /** HTTP version: 1.1 (default), 2 with prior knowledge, or negotiated over TLS. */
  version?: "1.1" | "2" | "any";
}

/**
 * Creates a transport over `fetch`. HTTP/1.1 is preferred because HTTP/2 streams wait silently at the peer's stream limit.
 * Redirects are not followed, because that would send the key to another host. If a reused connection ends before the
 * answer, Deno itself resends the request, even if it had arrived.
 */
export function createFetchTransport(
  { idleConnections = 256, version = "1.1", guard, keepsHeader }: FetchOptions = {},
): Transport {
  const client = Deno.createHttpClient({
    http1: version !== "2",
    http2: version !== "1.1",
    poolMaxIdlePerHost: idleConnections,
    allowHost: true,
  });
  // HTTP/2 takes the host name from the URL, so the URL cannot be pinned to an address.
  const urls = createPinnedUrls({ guard, pins: version === "1.1" });
  const released: Released = { stops: new Set(), closed: false };
  const hosts = createHostProbes(undefined, guard);
  const timers = new PhaseTimers({ lingers: true });
  return {
    async send({ url, headers, body: given, signal, limits }) {
      const isLong = typeof given === "string" && given.length > LARGE_BODY_BYTES;
      const isPieces = typeof given === "object" && !(given instanceof ReadableStream);
      const whole = isPieces ? joinPieces(given) : given;
      const body = isLong ? await runSliced(encodeUtf8(given)) : whole;
      const call = new AbortController();
      const abort = { handleEvent: () => call.abort(signal.reason) };
      if (signal.aborted) abort.handleEvent();
      signal.addEventListener("abort", abort);
      const timer = startTimer(timers, { limits, host: hosts.of(url), call });
      const finish = () => {
        timer.stop();
        signal.removeEventListener("abort", abort);
      };
      let isChecked = false;
      try {
        const pinned = await abortable(urls.of(url), call.signal);
        isChecked = true;
        const response = await fetch(pinned.url, {
          method: "POST",
          headers: { ...headers, ...pinned.headers, "accept-encoding": "identity", "user-agent": "sluice" },
          body,
          redirect: "manual",
          signal: call.signal,
          client,
        });
        return receive(response, { call, timer, finish, released, keepsHeader });
      } catch (cause) {
        finish();
        urls.forget(url);
        const error = failure(call.signal, "Cannot reach the model's upstream", cause);
        // A request that failed before the address check was never sent.
        throw error instanceof GatewayError && error.cause === cause && !isChecked
          ? error.with({ fault: "unreachable" })
          : error;
      }
    },
    close() {
      released.closed = true;
      for (const stop of released.stops) stop();
      hosts.close();
      timers.close();
      client.close();
    },
  };
}

/**
 * Returns whether an error means that no connection could be made (DNS, TCP or TLS). Deno reports this in the message
 * of the error or of its cause.
 */
function isUnreachable(thrown: unknown): boolean {
  if (!(thrown instanceof Error)) return false;
  const { message, cause } = thrown;
  return `${message} ${cause instanceof Error ? cause.message : ""}`.includes("client error (Connect)");
}

interface ReceivedCall {
  call: AbortController;
  timer: CallTimer;
  /** Stops the time limits, and ends listening to the caller's signal. */
  finish: () => void;
  released: Released;
  keepsHeader: HeaderFilter | undefined;
}

/** Released answers that are still being drained. */
interface Released {
  stops: Set<() => void>;
  /** True after `close`. */
  closed: boolean;
}

function receive(response: Response, { call, timer, finish, released, keepsHeader }: ReceivedCall): Incoming {
  const encoding = response.headers.get("content-encoding");
  const reader = response.body?.getReader();
  let over = false;
  const incoming: Incoming = {
    status: response.status,
    header: (name) => response.headers.get(name),
    others: keepsHeader && othersOf(response.headers, keepsHeader),
    async read() {
      try {
        timer.wait();
        const piece = await reader?.read();
        timer.progress();
        if (piece?.value !== undefined) return piece.value;
        over = true;
        finish();
        return undefined;
      } catch (cause) {
        over = true;
        finish();
        throw failure(call.signal, "The upstream's answer broke off", cause);
      }
    },
    async text(limitBytes) {
      const decode = utf8Decoder();
      let text = "";
      let bytes = 0;
      for (let piece = await incoming.read(); piece !== undefined; piece = await incoming.read()) {
        bytes += piece.length;
        if (bytes > limitBytes) {
          incoming.cancel();
          throw new GatewayError("upstream", "Cannot read the upstream's answer: it is too large");
        }
        text += decode(piece);
      }
      return text + decode();
    },
    release() {
      if (over) return;
      if (released.closed) return incoming.cancel();
      over = true;
      finish();
      const stop = () => {
        clearTimeout(timer);
        released.stops.delete(stop);
        call.abort();
      };
      const timer = setTimeout(stop, MAX_RELEASED_MS);
      released.stops.add(stop);
      void readReleased(reader).then(stop);
    },
    cancel() {
      if (over) return;
      over = true;
      finish();
      // Aborting also closes the connection.
      call.abort();
      reader?.cancel().catch(() => {});
    },
  };
  timer.head();
  if (encoding !== null && encoding !== "identity") {
    incoming.cancel();
    throw new GatewayError(
      "upstream",
      "Cannot read the upstream's answer: it is compressed, which the request does not accept",
    );
  }
  return incoming;
}

/** Returns the headers that are kept besides the usual ones. */
function othersOf(headers: Headers, keepsHeader: HeaderFilter): ResponseHeader[] {
  const usual: readonly string[] = RESPONSE_HEADERS;
  return [...headers].filter(([name]) => !usual.includes(name) && keepsHeader(name));
}

/** Reads the rest of a released answer. Resolves at its end, at the size limit, or when the call is aborted. */
async function readReleased(reader: ReadableStreamDefaultReader<Uint8Array> | undefined): Promise<void> {
  try {
    for (let bytes = 0; bytes <= MAX_RELEASED_BYTES;) {
      const piece = await reader?.read();
      if (piece?.value === undefined) return;
      bytes += piece.value.length;
    }
  } catch {
    // The caller already has the complete answer.
  }
}

/** Returns the abort reason of a call, or the network error as a `GatewayError`. */
function failure(signal: AbortSignal, message: string, cause: unknown): unknown {
  if (cause instanceof GatewayError) return cause;
  if (signal.aborted && signal.reason !== undefined) return signal.reason;
  return new GatewayError("upstream", message, {
    cause,
    ...(isUnreachable(cause) && { fault: "unreachable" as const }),
  });
}

/**
 * The time limits of a call. It also records signs of life of the host, because `fetch` does not report connections.
 */
type CallTimer = Pick<RequestTimer, "wait" | "head" | "progress" | "stop">;

/** Starts the time limits of a call. A host that gives no sign of life for half of the connect limit is probed. */
function startTimer(
  timers: PhaseTimers,
  { limits, host, call }: { limits: TimeLimits; host: HostReachability; call: AbortController },
): CallTimer {
  const timer = new RequestTimer(timers, { limits, call: { fail: (error) => call.abort(error) } });
  const { connectMs } = limits;
  timer.connecting();
  const probe = setTimeout(() => {
    const leftMs = timer.started + connectMs - performance.now();
    // If this process stalled, the probe is late, so the host gets more time.
    if (leftMs < MIN_PROBE_MS) timer.connecting();
    host.probe(leftMs < MIN_PROBE_MS ? connectMs : leftMs);
  }, connectMs / 2);
  const ignoreSign = host.nextSign(() => {
    clearTimeout(probe);
    timer.connected();
  });
  return {
    wait: () => timer.wait(),
    head() {
      host.alive();
      timer.head();
    },
    progress() {
      host.alive();
      timer.progress();
    },
    stop() {
      clearTimeout(probe);
      ignoreSign();
      timer.stop();
    },
  };
}
