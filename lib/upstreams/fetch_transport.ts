/** A transport over `fetch`, for proxies and HTTP/2. */
import { GatewayError, upstreamTimeout } from "../errors.ts";
import { abortable } from "../abort.ts";
import { LARGE_BODY_BYTES, runSliced } from "../scheduler.ts";
import { encodeUtf8, utf8Decoder } from "../text.ts";
import { type HeaderFilter, joinPieces, RESPONSE_HEADERS, type ResponseHeader } from "../http1/mod.ts";
import { createPinnedUrls } from "./pinned_urls.ts";
import { createHostProbes, type HostReachability } from "./reachability.ts";
import type { Incoming, Outgoing, ResendableBody, TimeLimits, Transport, TransportOptions } from "./transport.ts";

/** Limits on draining a released answer, in bytes and milliseconds. A drained connection can be reused. */
const REST_BYTES = 64 * 1024;
const REST_MS = 1_000;

/** Least time that a probed host has to accept a connection, in milliseconds. */
const PROBE_MS = 100;

/** Options of a transport over `fetch`. */
export interface FetchOptions extends TransportOptions {
  /** HTTP version: 1.1 (default), 2 with prior knowledge, or negotiated over TLS. */
  version?: "1.1" | "2" | "any";
}

/**
 * Creates a transport over `fetch`. HTTP/1.1 is preferred because HTTP/2 streams wait silently at the peer's stream limit.
 * Redirects are not followed, because that would send the key to another host. Deno itself resends a request whose kept
 * connection ends before the answer, even if the request had arrived.
 */
export function createFetchTransport(
  { idleConnections = 256, version = "1.1", guard, keeps }: FetchOptions = {},
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
  return {
    async send({ url, headers, body: given, signal, limits }) {
      const isLong = typeof given === "string" && given.length > LARGE_BODY_BYTES;
      const body = isLong ? await runSliced(encodeUtf8(given)) : isPieces(given) ? joinPieces(given) : given;
      const call = new AbortController();
      const leaving = { handleEvent: () => call.abort(signal.reason) };
      if (signal.aborted) leaving.handleEvent();
      signal.addEventListener("abort", leaving);
      const timer = startTimer({ limits, host: hosts.of(url) }, (error) => call.abort(error));
      const finish = () => {
        timer.stop();
        signal.removeEventListener("abort", leaving);
      };
      let isJudged = false;
      try {
        const pinned = await abortable(urls.of(url), call.signal);
        isJudged = true;
        const response = await fetch(pinned.url, {
          method: "POST",
          headers: { ...headers, ...pinned.headers, "accept-encoding": "identity", "user-agent": "sluice" },
          body,
          redirect: "manual",
          signal: call.signal,
          client,
        });
        return receive(response, { call, timer, finish, released, keeps });
      } catch (cause) {
        finish();
        urls.forget(url);
        const error = failure(call.signal, "Cannot reach the model's upstream", cause);
        // A request that failed before the address check was never sent.
        throw error instanceof GatewayError && error.cause === cause && !isJudged
          ? error.with({ fault: "unreachable" })
          : error;
      }
    },
    close() {
      released.closed = true;
      for (const stop of released.stops) stop();
      hosts.close();
      client.close();
    },
  };
}

/**
 * True if no connection could be made (DNS, TCP or TLS). Deno reports this in the message of the error or of its cause.
 */
function isUnreachable(thrown: unknown): boolean {
  if (!(thrown instanceof Error)) return false;
  const { message, cause } = thrown;
  return `${message} ${cause instanceof Error ? cause.message : ""}`.includes("client error (Connect)");
}

function isPieces(body: Outgoing["body"]): body is Exclude<ResendableBody, string> {
  return typeof body === "object" && !(body instanceof ReadableStream);
}

interface Call {
  call: AbortController;
  timer: UpstreamTimer;
  finish: () => void;
  released: Released;
  keeps: HeaderFilter | undefined;
}

/** Released answers that are still being drained. */
interface Released {
  /** Stops each drain. */
  stops: Set<() => void>;
  /** True after `close`. */
  closed: boolean;
}

function receive(response: Response, { call, timer, finish, released, keeps }: Call): Incoming {
  const encoding = response.headers.get("content-encoding");
  const reader = response.body?.getReader();
  let over = false;
  const incoming: Incoming = {
    status: response.status,
    header: (name) => response.headers.get(name),
    others: keeps && othersOf(response.headers, keeps),
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
      const timer = setTimeout(stop, REST_MS);
      released.stops.add(stop);
      void readRest(reader).then(stop);
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

/** The headers that are kept beside the usual ones. */
function othersOf(headers: Headers, keeps: HeaderFilter): ResponseHeader[] {
  const usual: readonly string[] = RESPONSE_HEADERS;
  return [...headers].filter(([name]) => !usual.includes(name) && keeps(name));
}

/** Drains an answer. Resolves at its end, at the size limit, or when the call is aborted. */
async function readRest(reader: ReadableStreamDefaultReader<Uint8Array> | undefined): Promise<void> {
  try {
    for (let bytes = 0; bytes <= REST_BYTES;) {
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

interface UpstreamTimer {
  /** The call waits for the upstream. */
  wait(): void;
  /** The head arrived. */
  head(): void;
  /** Reports a piece of the body. Until the next `wait` no timer runs: a slow client is not the upstream's fault. */
  progress(): void;
  stop(): void;
}

/** Starts the time limits of a call. One timer of the runtime checks them, instead of one for each piece. */
function startTimer(
  { limits: { connectMs, firstByteMs, idleMs, totalMs, begins = "head" }, host }: {
    limits: TimeLimits;
    host: HostReachability;
  },
  expire: (error: GatewayError) => void,
): UpstreamTimer {
  const started = performance.now();
  let waitingSince: number | undefined = started;
  /** True until the host has been reached. */
  let reaching = true;
  /** Time at which the host counts as lost; undefined before the probe. */
  let lostAt: number | undefined;
  let answered = false;
  let stopped = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let due = Infinity;

  function check(): void {
    const now = performance.now();
    reaching &&= host.aliveAt <= started;
    const phaseMs = answered ? idleMs : firstByteMs;
    const phaseEnd = (waitingSince ?? now) + phaseMs;
    const whole = started + totalMs;
    const end = Math.min(phaseEnd, whole);
    if (now >= end) {
      return expire(
        phaseEnd < whole
          ? upstreamTimeout(answered ? "nothing more" : "no answer", phaseMs)
          : upstreamTimeout("no whole answer", totalMs),
      );
    }
    const checkAt = reaching ? reach(now) : Infinity;
    if (checkAt <= now) return expire(upstreamTimeout("no connection", connectMs));
    arm(Math.min(end, checkAt), now);
  }

  /** Probes the host if it has not answered for a while. Returns when to check again; a past time means that it is lost. */
  function reach(now: number): number {
    const probeAt = started + connectMs / 2;
    if (now < probeAt) return probeAt;
    if (lostAt === undefined) {
      // If this process was held up, its probe is late, so the host gets more time.
      lostAt = Math.max(started + connectMs, now + PROBE_MS);
      host.probe(lostAt - now);
    }
    return lostAt;
  }

  function arm(end: number, now: number): void {
    clearTimeout(timer);
    due = end;
    timer = setTimeout(check, end - now + 1);
  }

  check();
  return {
    wait() {
      const now = performance.now();
      waitingSince = now;
      // The timer may still be set for the end of the wait for the first byte.
      if (answered && !stopped && due > now + idleMs) arm(now + idleMs, now);
    },
    head() {
      host.alive();
      waitingSince = undefined;
      reaching = false;
      if (begins === "head") answered = true;
    },
    progress() {
      host.alive();
      waitingSince = undefined;
      answered = true;
    },
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
