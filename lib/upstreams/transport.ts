/** The way to an upstream and back: one function, over `fetch`. */
import { encodeLong, isLongText } from "./long_body.ts";
import { GatewayError, upstreamTimeout } from "../errors.ts";
import { abortable } from "../abort.ts";
import { pieceDecoder } from "../json/utf8_steps.ts";
import { type Http1Request, type Http1Response, joinPieces } from "../http1/mod.ts";
import type { AddressGuard } from "./address_guard.ts";
import { createPinnedUrls } from "./pinned_urls.ts";
import { createHosts, type Host } from "./reach.ts";

/**
 * Time limits of one call. Over `fetch`, a host is reached when it has given a sign of life, to any call, since this one
 * began; one that has not is knocked at after half of `connectMs`.
 */
export type TimeLimits = Http1Request["limits"];

/** One request to an upstream. `fetch` sends a stream in chunks even where its length is known. */
export type Outgoing = Http1Request;

/** An upstream's answer while it arrives. */
export type Incoming = Http1Response;

/** A body that is known as a whole and may be sent more than once. */
export type WholeBody = Exclude<Outgoing["body"], ReadableStream>;

/** Sends requests to one upstream. */
export interface Transport {
  /**
   * @throws {GatewayError} `upstream` where nobody answers, with the fault `stale` where another connection may be all
   * that is needed; `timeout`; or the reason the call's signal was aborted with
   */
  send(outgoing: Outgoing): Promise<Incoming>;
  close(): void;
}

/** Most that is read after an answer's end, in bytes and in milliseconds. */
const REST_BYTES = 64 * 1024;
const REST_MS = 1_000;

/** Least time that a host has to open when it is knocked at, in milliseconds. */
const KNOCK_MS = 100;

/** How a transport treats its connections. */
export interface TransportOptions {
  /**
   * Idle connections kept per host. With 0 each call makes its own: a kept connection that the host is just closing
   * fails in a way that does not tell whether the request arrived.
   */
  idleConnections?: number;
  /** Judges what hosts resolve to; absent: metadata addresses are refused. */
  guard?: AddressGuard | undefined;
}

/** How a transport over `fetch` speaks. */
export interface FetchOptions extends TransportOptions {
  /** Which HTTP: 1.1, which is the default; 2, at once; or what the host prefers, which is only known over TLS. */
  version?: "1.1" | "2" | "any";
}

/**
 * A transport over `fetch`. HTTP/1.1 where the host can: a second stream over one HTTP/2 connection waits silently once the
 * peer's limit of streams is reached. Redirects are answers, not instructions: following one would carry the key elsewhere.
 * The runtime sends a request a second time whose kept connection ends before the answer, also where it had arrived whole.
 */
export function createFetchTransport({ idleConnections = 256, version = "1.1", guard }: FetchOptions = {}): Transport {
  const client = Deno.createHttpClient({
    http1: version !== "2",
    http2: version !== "1.1",
    poolMaxIdlePerHost: idleConnections,
    allowHost: true,
  });
  // HTTP/2 takes the name of the host from the URL.
  const urls = createPinnedUrls({ guard, pins: version === "1.1" });
  const released: Released = { stops: new Set(), closed: false };
  const hosts = createHosts(undefined, guard);
  return {
    async send({ url, headers, body: given, signal, limits }) {
      const body = isLongText(given) ? await encodeLong(given) : isPieces(given) ? joinPieces(given) : given;
      const call = new AbortController();
      const leaving = { handleEvent: () => call.abort(signal.reason) };
      if (signal.aborted) leaving.handleEvent();
      signal.addEventListener("abort", leaving);
      const watch = startWatch({ limits, host: hosts.of(url) }, (error) => call.abort(error));
      const finish = () => {
        watch.stop();
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
        return receive(response, { call, watch, finish, released });
      } catch (cause) {
        finish();
        urls.forget(url);
        const error = failure(call.signal, "Cannot reach the model's upstream", cause);
        // What failed before it was judged was never sent.
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

/** True for an error of `send` where no connection could be made: the request has certainly not arrived. */
export function wasNeverSent(error: unknown): boolean {
  return error instanceof GatewayError && error.fault === "unreachable";
}

/**
 * True where a connection failed to be made: by its name, in the network or in TLS. Newer runtimes tell this in the cause of
 * what `fetch` throws, older ones in its message.
 */
function isUnreachable(thrown: unknown): boolean {
  if (!(thrown instanceof Error)) return false;
  const { message, cause } = thrown;
  return `${message} ${cause instanceof Error ? cause.message : ""}`.includes("client error (Connect)");
}

function isPieces(body: Outgoing["body"]): body is Exclude<WholeBody, string> {
  return typeof body === "object" && !(body instanceof ReadableStream);
}

interface Call {
  call: AbortController;
  watch: Watch;
  finish: () => void;
  released: Released;
}

/** The rests of answers that are being read. */
interface Released {
  /** Ends the reading of each. */
  stops: Set<() => void>;
  /** True: there is no more of it. */
  closed: boolean;
}

function receive(response: Response, { call, watch, finish, released }: Call): Incoming {
  const encoding = response.headers.get("content-encoding");
  const reader = response.body?.getReader();
  let over = false;
  const incoming: Incoming = {
    status: response.status,
    header: (name) => response.headers.get(name),
    async read() {
      try {
        watch.wait();
        const piece = await reader?.read();
        watch.progress();
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
      const decode = pieceDecoder();
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
      // Aborting closes the connection at once.
      call.abort();
      reader?.cancel().catch(() => {});
    },
  };
  watch.head();
  if (encoding !== null && encoding !== "identity") {
    incoming.cancel();
    throw new GatewayError("upstream", "Cannot read the upstream's answer: it is compressed although nobody asked");
  }
  return incoming;
}

/** Resolves when there is nothing left to read, when that is too much, and when the call was aborted. */
async function readRest(reader: ReadableStreamDefaultReader<Uint8Array> | undefined): Promise<void> {
  try {
    for (let bytes = 0; bytes <= REST_BYTES;) {
      const piece = await reader?.read();
      if (piece?.value === undefined) return;
      bytes += piece.value.length;
    }
  } catch {
    // The answer itself is complete.
  }
}

/** The reason a call was given up for, or what the network said in our own words. */
function failure(signal: AbortSignal, message: string, cause: unknown): unknown {
  if (cause instanceof GatewayError) return cause;
  if (signal.aborted && signal.reason !== undefined) return signal.reason;
  return new GatewayError("upstream", message, {
    cause,
    ...(isUnreachable(cause) && { fault: "unreachable" as const }),
  });
}

interface Watch {
  /** The upstream is being waited for. */
  wait(): void;
  /** The head arrived. */
  head(): void;
  /** A piece of the body arrived. Until the next `wait` nobody is waiting: a slow client is not the upstream's fault. */
  progress(): void;
  stop(): void;
}

/** Watches the time with one timer that looks since when the upstream is waited for, instead of one timer per piece. */
function startWatch(
  { limits: { connectMs, firstByteMs, idleMs, totalMs, begins = "head" }, host }: { limits: TimeLimits; host: Host },
  expire: (error: GatewayError) => void,
): Watch {
  const started = performance.now();
  let waitingSince: number | undefined = started;
  /** Whether the host has yet to be reached. */
  let reaching = true;
  /** When it counts as lost, once it was knocked at. */
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

  /** Sees to it that the host gives a sign of life. Returns when to look again; a time that has come: it gives none. */
  function reach(now: number): number {
    const knockAt = started + connectMs / 2;
    if (now < knockAt) return knockAt;
    if (lostAt === undefined) {
      // A process that was held up has not knocked in time: that is not the host's fault.
      lostAt = Math.max(started + connectMs, now + KNOCK_MS);
      host.knock(lostAt - now);
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
      // The timer may still stand where the wait for the first byte would have ended.
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
