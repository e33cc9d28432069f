/** A yardstick: the way to an upstream over the client of `node:http`, as the runtime brings it. */
import * as http from "node:http";
import * as https from "node:https";
import { GatewayError } from "../lib/errors.ts";
import { joinPieces } from "../lib/http1/mod.ts";
import { RequestTimer } from "../lib/http1/request_timer.ts";
import { PhaseTimers } from "../lib/phase_timers.ts";
import type { Incoming, Outgoing, Transport, TransportOptions } from "../lib/upstreams/transport.ts";

/** Most that is read after an answer's end, in bytes and in milliseconds. */
const REST_BYTES = 64 * 1024;
const REST_MS = 1_000;

/** Most bytes of an answer's head. */
const HEAD_BYTES = 64 * 1024;

/** State that the calls of one transport share. */
interface ClientState {
  deadlines: PhaseTimers;
  agentFor(protocol: string): http.Agent;
  /** Ends the reading of rests. */
  released: Set<() => void>;
}

/**
 * A transport over `node:http`, for comparison. The runtime repeats a request if its kept connection ends before the
 * answer, even an aborted one.
 */
export function createNodeTransport({ idleConnections = 256 }: TransportOptions = {}): Transport {
  const options = { keepAlive: idleConnections > 0, maxFreeSockets: idleConnections, scheduling: "lifo" as const };
  const agents = { http: new http.Agent(options), https: new https.Agent(options) };
  const deadlines = new PhaseTimers({ lingers: true });
  const shared: ClientState = {
    deadlines,
    agentFor: (protocol) => protocol === "https:" ? agents.https : agents.http,
    released: new Set(),
  };
  return {
    async send(outgoing) {
      if (outgoing.signal.aborted) throw outgoing.signal.reason;
      return await startCall(outgoing, shared);
    },
    close() {
      for (const stop of shared.released) stop();
      deadlines.close();
      // Open calls complete.
      for (const agent of [agents.http, agents.https]) {
        agent.maxFreeSockets = 0;
        for (const socket of Object.values(agent.freeSockets).flat()) socket?.destroy();
      }
    },
  };
}

/** State of one call. */
interface Call {
  request: http.ClientRequest;
  watch: RequestTimer;
  /** The reason it was given up for. */
  error(): unknown;
  finish(): void;
}

function startCall({ url, headers, body, signal, limits }: Outgoing, shared: ClientState): Promise<Incoming> {
  const head = Promise.withResolvers<Incoming>();
  const { protocol } = new URL(url);
  let failure: { error: unknown } | undefined;
  let request: http.ClientRequest;
  const fail = (error: unknown) => {
    failure ??= { error };
    finish();
    request?.destroy();
    head.reject(error);
  };
  const leave = { handleEvent: () => fail(signal.reason) };
  const watch = new RequestTimer(shared.deadlines, { limits, call: { fail } });
  const finish = () => {
    watch.stop();
    signal.removeEventListener("abort", leave);
  };
  try {
    request = (protocol === "https:" ? https : http).request(url, {
      method: "POST",
      agent: shared.agentFor(protocol),
      maxHeaderSize: HEAD_BYTES,
      headers: {
        ...headers,
        "accept-encoding": "identity",
        "user-agent": "sluice",
        ...(typeof body === "string" && { "content-length": new TextEncoder().encode(body).length }),
      },
    });
  } catch (cause) {
    finish();
    throw new GatewayError("upstream", "Cannot reach the model's upstream", { cause });
  }
  signal.addEventListener("abort", leave);
  let reached = false;
  request.on("socket", (socket) => {
    reached = !socket.connecting;
    if (reached) return;
    watch.connecting();
    socket.once(protocol === "https:" ? "secureConnect" : "connect", () => {
      reached = true;
      watch.connected();
    });
  });
  request.on("error", (cause) => {
    const fault = reached ? undefined : "unreachable" as const;
    fail(new GatewayError("upstream", "Cannot reach the model's upstream", { cause, fault }));
  });
  request.on("response", (response) => {
    watch.head();
    try {
      head.resolve(receive(response, { request, watch, finish, error: () => failure?.error }, shared));
    } catch (error) {
      head.reject(error);
    }
  });
  if (typeof body === "string") request.end(body);
  else if (!(body instanceof ReadableStream)) request.end(joinPieces(body));
  else pump(body, request).catch(fail);
  return head.promise;
}

/** Writes a stream as fast as the peer takes it. */
async function pump(body: ReadableStream<Uint8Array>, request: http.ClientRequest): Promise<void> {
  for await (const piece of body) {
    if (request.destroyed) return;
    if (request.write(piece)) continue;
    await new Promise<void>((resolve) => {
      const go = () => {
        request.off("drain", go);
        request.off("close", go);
        resolve();
      };
      request.on("drain", go);
      request.on("close", go);
    });
  }
  request.end();
}

function receive(response: http.IncomingMessage, call: Call, { released }: ClientState): Incoming {
  const { request, watch, finish } = call;
  let over = false;
  let broken: unknown;
  let wake = () => {};
  response.on("readable", () => wake());
  response.on("end", () => wake());
  response.on("close", () => wake());
  response.on("error", (error) => {
    broken = error;
    wake();
  });

  /** The next bytes; `undefined` at the end. */
  async function next(): Promise<Uint8Array | undefined> {
    while (true) {
      const piece: Uint8Array | null = response.read();
      if (piece !== null) return piece;
      if (response.readableEnded && response.complete) return undefined;
      if (broken !== undefined || response.destroyed || response.readableEnded) {
        throw broken ?? new Error("The connection ended before the body");
      }
      await new Promise<void>((resolve) => wake = resolve);
    }
  }

  const incoming: Incoming = {
    status: response.statusCode ?? 0,
    header(name) {
      const value = response.headers[name.toLowerCase()];
      return Array.isArray(value) ? value.join(", ") : value ?? null;
    },
    async read() {
      if (over) return undefined;
      try {
        watch.wait();
        const piece = await next();
        watch.progress();
        if (piece !== undefined) return piece;
        over = true;
        finish();
        return undefined;
      } catch (cause) {
        over = true;
        finish();
        request.destroy();
        throw call.error() ?? new GatewayError("upstream", "The upstream's answer broke off", { cause });
      }
    },
    async text(limitBytes) {
      const pieces: Uint8Array[] = [];
      let bytes = 0;
      for (let piece = await incoming.read(); piece !== undefined; piece = await incoming.read()) {
        bytes += piece.length;
        if (bytes > limitBytes) {
          incoming.cancel();
          throw new GatewayError("upstream", "Cannot read the upstream's answer: it is too large");
        }
        pieces.push(piece);
      }
      return new TextDecoder().decode(joined(pieces, bytes));
    },
    release() {
      if (over) return;
      over = true;
      finish();
      const stop = () => {
        clearTimeout(timer);
        released.delete(stop);
        if (!response.readableEnded) request.destroy();
      };
      const timer = setTimeout(stop, REST_MS);
      released.add(stop);
      void readRest(next).then(stop);
    },
    cancel() {
      if (over) return;
      over = true;
      finish();
      request.destroy();
    },
  };
  const encoding = incoming.header("content-encoding");
  if (encoding !== null && encoding !== "identity") {
    incoming.cancel();
    throw new GatewayError(
      "upstream",
      "Cannot read the upstream's answer: it is compressed, which the request does not accept",
    );
  }
  return incoming;
}

/** Resolves when there is nothing left to read, when that is too much, and when the connection is gone. */
async function readRest(next: () => Promise<Uint8Array | undefined>): Promise<void> {
  try {
    for (let bytes = 0; bytes <= REST_BYTES;) {
      const piece = await next();
      if (piece === undefined) return;
      bytes += piece.length;
    }
  } catch {
    // The answer itself is complete.
  }
}

function joined(pieces: readonly Uint8Array[], bytes: number): Uint8Array {
  const [first] = pieces;
  if (first !== undefined && pieces.length === 1) return first;
  const all = new Uint8Array(bytes);
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}
