/**
 * Serves WebSockets on `/v1/responses`: each message `response.create` becomes a request, and its events become
 * messages.
 */
import { requireCaller } from "../access/permissions.ts";
import { GatewayError, toGatewayError } from "../errors.ts";
import type { LocalResponses } from "../recall/recall.ts";
import { bodyTooLarge } from "../server/head.ts";
import type { ConnectionHost } from "../server/connection_host.ts";
import type { RouteContext } from "../server/router.ts";
import { LONG_TEXT_CHARS, runForKey, yieldToEventLoop } from "../scheduler.ts";
import { SseReader } from "../server/sse.ts";
import {
  type ClientMessage,
  type CreateMessage,
  readLongMessage,
  readMessage,
  withStreamId,
  writeErrorMessage,
  writeMessageError,
} from "./socket_message.ts";
import { setTurn } from "./turn.ts";

/** Seconds without a pong after which a connection counts as lost. The runtime sends the pings. */
const PONG_SECONDS = 60;

/** Longest lifetime of a connection, as at OpenAI, in milliseconds. */
const MAX_AGE_MS = 3_600_000;

/** Maximum number of concurrent streams of one connection. */
const MAX_STREAMS = 8;

/** Maximum number of queued messages of one stream. */
const MAX_WAITING = 64;

/** Maximum number of messages of a connection that are not yet read. Above that, it is closed. */
const MAX_UNREAD = 128;

/**
 * Shortest time between two messages that are read when they arrive, on all connections, in milliseconds. The runtime
 * delivers whatever has arrived in one turn of the event loop: 6 million messages kept it for 13 s.
 */
const READ_INTERVAL_MS = 2;

/** Time at which the last message was read when it arrived, on any connection. */
let lastReadAt = -Infinity;

/** Maximum number of unsent bytes of a connection. Above that, no further event or message is read. */
const MAX_BUFFERED_BYTES = 1_048_576;
/** Interval at which the unsent bytes are checked, in milliseconds. */
const POLL_MS = 10;

/** Close codes (RFC 6455, 7.4.1). */
const NORMAL = 1000, GOING_AWAY = 1001, POLICY_VIOLATION = 1008, FAILED = 1011;

/** Headers of the upgrade request that do not apply to the requests on the connection. */
const UPGRADE_HEADERS = /^(?:connection|upgrade|sec-websocket-.*|content-.*|transfer-encoding|keep-alive)$/;

/**
 * Answers `GET /v1/responses` with an upgrade to a WebSocket.
 * @throws {GatewayError} `upgrade_required` for a plain request, and if WebSockets are disabled or too many are open
 */
export function openResponsesSocket(request: Request, context: RouteContext): Response {
  const { connection, gateway } = context;
  const { config: { responses: { websocket }, resource_limits }, recall, monotonic } = gateway;
  if (connection === undefined) throw plainRequest();
  if (!isHandshake(request)) throw noSockets("a proxy in front took its header Connection or Sec-WebSocket-Key away");
  if (websocket === null || recall.limits === null) throw noSockets("they are disabled");
  const { keyId } = requireCaller(context.caller);
  if (connection.drain.connections("socket") >= websocket.connections) throw noSockets("too many are open");
  if (connection.drain.connections("socket", keyId) >= websocket.connections_per_key) {
    throw noSockets("too many of this API key are open");
  }
  // After the upgrade the request can no longer be read.
  const { url } = request;
  const headers = [...request.headers].filter(([name]) => !UPGRADE_HEADERS.test(name));
  const { socket, response } = Deno.upgradeWebSocket(request, { idleTimeout: PONG_SECONDS });
  new ResponsesSocket(socket, {
    url,
    headers: [...headers, ["content-type", "application/json"]],
    host: connection,
    keyId,
    local: recall.openLocal(keyId),
    maxBytes: resource_limits.json_body_bytes,
    idleMs: websocket.idle_seconds * 1000,
    monotonic,
  });
  return response;
}

interface SocketOptions {
  /** URL and headers of the requests on the connection. */
  url: string;
  headers: [string, string][];
  host: ConnectionHost;
  keyId: string;
  /** Responses that only this connection can refer to. */
  local: LocalResponses;
  /** Maximum number of bytes of a message, and of all queued messages, which take two bytes per UTF-16 code unit. */
  maxBytes: number;
  /** Longest idle time, in milliseconds. */
  idleMs: number;
  monotonic: () => number;
}

type WaitingMessages = CreateMessage[];

class ResponsesSocket {
  readonly #socket: WebSocket;
  readonly #options: SocketOptions;
  /** Queued messages of the running streams, by stream id. */
  readonly #streams = new Map<string | undefined, WaitingMessages>();
  readonly #requests = new Set<AbortController>();
  readonly #openedAt: number;
  readonly #disconnect: () => void;
  #waitingBytes = 0;
  /** Resolves when all messages are read. They are read one after another. */
  #reading: Promise<void> = Promise.resolve();
  /** Number of messages that are not yet read. */
  #unread = 0;
  #isShuttingDown = false;
  #idle: ReturnType<typeof setTimeout> | undefined;

  constructor(socket: WebSocket, options: SocketOptions) {
    this.#socket = socket;
    this.#options = options;
    this.#openedAt = options.monotonic();
    this.#disconnect = options.host.drain.connect("socket", () => this.#closeWhenIdle(), options.keyId);
    socket.onmessage = ({ data }) => runForKey(options.keyId, () => this.#receive(data));
    socket.onclose = () => this.#closed();
    // A close event follows every error.
    socket.onerror = () => {};
    this.#startIdle();
  }

  /** Reads a message at once; a long one, and one that arrives while or soon after another is read, waits in a queue. */
  #receive(data: unknown): void {
    if (!this.#isOpen) return;
    if (this.#unread >= MAX_UNREAD) return this.#socket.close(POLICY_VIOLATION, "Too many messages at once");
    const problem = problemOf(data, this.#options.maxBytes);
    const text = problem === undefined ? String(data) : "";
    const now = performance.now();
    if (this.#unread > 0 || text.length > LONG_TEXT_CHARS || now < lastReadAt + READ_INTERVAL_MS) {
      return this.#queueRead(text, problem);
    }
    lastReadAt = now;
    try {
      if (problem !== undefined) throw problem;
      this.#accept(readMessage(text));
    } catch (error) {
      this.#refuse(toGatewayError(error));
    }
  }

  #queueRead(text: string, problem: GatewayError | undefined): void {
    let bytes = 2 * text.length;
    try {
      this.#options.host.waiting.reserve(bytes);
    } catch (error) {
      [text, bytes, problem] = ["", 0, toGatewayError(error)];
    }
    this.#unread++;
    clearTimeout(this.#idle);
    this.#reading = this.#readQueued({ text, bytes, problem }, this.#reading);
  }

  /** Reads a message in slices, after earlier ones and in a turn of the event loop of its own. */
  async #readQueued(
    { text, bytes, problem }: { text: string; bytes: number; problem: GatewayError | undefined },
    earlier: Promise<void>,
  ): Promise<void> {
    await earlier;
    if (this.#isOpen) await yieldToEventLoop();
    let message: ClientMessage | undefined;
    try {
      if (problem !== undefined) throw problem;
      if (this.#isOpen) message = text.length > LONG_TEXT_CHARS ? await readLongMessage(text) : readMessage(text);
    } catch (error) {
      this.#refuse(toGatewayError(error));
    }
    this.#unread--;
    this.#options.host.waiting.release(bytes);
    if (message !== undefined && this.#isOpen) this.#accept(message);
    if (this.#streams.size === 0 && this.#isOpen) this.#startIdle();
  }

  #accept({ type, streamId, create }: ClientMessage): void {
    if (create !== undefined) return this.#enqueue(create);
    // Codex sends this type after a compaction, and expects no answer.
    if (type === "response.processed") return;
    this.#refuse("Cannot read the message: expected a JSON object of type response.create", streamId);
  }

  #enqueue(message: CreateMessage): void {
    const { streamId } = message;
    const waiting = this.#streams.get(streamId);
    if (waiting === undefined && this.#streams.size >= MAX_STREAMS) {
      return this.#refuse(`Cannot open another stream: ${MAX_STREAMS} are running`, streamId);
    }
    const isFull = waiting !== undefined &&
      (waiting.length >= MAX_WAITING || this.#waitingBytes + memoryOf(message) > this.#options.maxBytes);
    if (isFull) {
      return this.#refuse("Cannot accept the message: too many are waiting for an earlier response", streamId);
    }
    if (this.#options.monotonic() - this.#openedAt > MAX_AGE_MS) return this.#expire(streamId);
    if (waiting === undefined) {
      void this.#run(message);
      return;
    }
    try {
      this.#options.host.waiting.reserve(memoryOf(message));
    } catch (error) {
      return this.#refuse(toGatewayError(error), streamId);
    }
    this.#waitingBytes += memoryOf(message);
    waiting.push(message);
  }

  /** Runs a stream, whose messages are served one after another. */
  async #run(first: CreateMessage): Promise<void> {
    const waiting: WaitingMessages = [];
    clearTimeout(this.#idle);
    this.#streams.set(first.streamId, waiting);
    for (let message: CreateMessage | undefined = first; message !== undefined && this.#isOpen;) {
      await this.#serve(message);
      message = waiting.shift();
      if (message !== undefined) this.#release(memoryOf(message));
    }
    this.#streams.delete(first.streamId);
    if (this.#streams.size > 0 || !this.#isOpen) return;
    if (this.#isShuttingDown) this.#closeWhenIdle();
    else this.#startIdle();
  }

  async #serve({ body, generate, streamId }: CreateMessage): Promise<void> {
    const { url, headers, host, local } = this.#options;
    const abort = new AbortController();
    const completed = Promise.withResolvers<void>();
    const arrived = host.drain.arrive();
    this.#requests.add(abort);
    const request = new Request(url, { method: "POST", headers, body, signal: abort.signal });
    setTurn(request, { local, isWarmUp: !generate });
    try {
      const response = await host.serve(request, completed.promise);
      const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
      if (isStream && response.body !== null) await this.#forward(response.body, { streamId, signal: abort.signal });
      else this.#send(await writeErrorMessage(response), streamId);
      await this.#whenDrained();
    } catch {
      // The answer was cut short without an error event.
      if (this.#isOpen) this.#socket.close(FAILED, "The answer was cut short");
    } finally {
      // A connection that this side closes may take long to end.
      if (!this.#isOpen) abort.abort();
      this.#requests.delete(abort);
      completed.resolve();
      arrived();
    }
  }

  /** Sends the events of a stream as fast as the client reads them. */
  async #forward(
    body: ReadableStream<Uint8Array>,
    { streamId, signal }: Pick<CreateMessage, "streamId"> & { signal: AbortSignal },
  ): Promise<void> {
    const reader = body.getReader();
    signal.addEventListener("abort", () => void reader.cancel().catch(() => {}), { once: true });
    const decoder = new TextDecoder();
    const events = new SseReader(Infinity);
    for (let { done, value } = await reader.read(); !done; { done, value } = await reader.read()) {
      for (const { data } of events.push(decoder.decode(value, { stream: true }))) {
        if (data !== "[DONE]") this.#send(data, streamId);
      }
      await this.#whenDrained();
      if (!this.#isOpen) return;
    }
  }

  /** Resolves when the client has read most of the sent data, or has disconnected. */
  async #whenDrained(): Promise<void> {
    while (this.#isOpen && this.#socket.bufferedAmount > MAX_BUFFERED_BYTES) {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  get #isOpen(): boolean {
    return this.#socket.readyState === WebSocket.OPEN;
  }

  #send(event: string, streamId: string | undefined): void {
    if (this.#isOpen) this.#socket.send(withStreamId(event, streamId));
  }

  /** Rejects a message. A client that does not read these errors is disconnected. */
  #refuse(problem: string | GatewayError, streamId?: string): void {
    if (this.#isOpen && this.#socket.bufferedAmount > MAX_BUFFERED_BYTES) {
      return this.#socket.close(POLICY_VIOLATION, "Too many errors were not read");
    }
    const error = typeof problem === "string" ? new GatewayError("invalid", problem) : problem;
    this.#send(writeMessageError(error), streamId);
  }

  #expire(streamId: string | undefined): void {
    const minutes = MAX_AGE_MS / 60_000;
    const error = new GatewayError("invalid", `This connection is ${minutes} minutes old: open a new one`, {
      code: "websocket_connection_limit_reached",
    });
    this.#send(writeMessageError(error), streamId);
    if (this.#streams.size === 0) this.#socket.close(NORMAL, "The connection reached its maximum age");
  }

  #startIdle(): void {
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => this.#socket.close(NORMAL, "The connection was idle"), this.#options.idleMs);
    Deno.unrefTimer(this.#idle);
  }

  /** Closes the connection after its last request. */
  #closeWhenIdle(): void {
    this.#isShuttingDown = true;
    if (this.#streams.size === 0) this.#socket.close(GOING_AWAY, "The gateway is shutting down");
  }

  /** Releases the memory of queued messages. */
  #release(bytes: number): void {
    this.#waitingBytes -= bytes;
    this.#options.host.waiting.release(bytes);
  }

  #closed(): void {
    clearTimeout(this.#idle);
    for (const waiting of this.#streams.values()) waiting.length = 0;
    this.#release(this.#waitingBytes);
    this.#disconnect();
    this.#options.local.close();
    for (const request of this.#requests) request.abort();
  }
}

/** Returns the error for a message that is not text or is too long; undefined for any other. */
function problemOf(data: unknown, maxBytes: number): GatewayError | undefined {
  if (typeof data !== "string") return new GatewayError("invalid", "Cannot read a binary message: expected text");
  // A character takes at least one byte.
  return data.length > maxBytes ? bodyTooLarge(maxBytes) : undefined;
}

/** Returns the most bytes that a queued message takes: two per UTF-16 code unit. */
function memoryOf({ body }: CreateMessage): number {
  return 2 * body.length;
}

/** True if a request that asks for an upgrade has the other headers of one, without which the runtime throws. */
function isHandshake({ headers }: Request): boolean {
  return headers.has("sec-websocket-key") && /(?:^|,)\s*upgrade\s*(?:,|$)/i.test(headers.get("connection") ?? "");
}

function plainRequest(): GatewayError {
  return new GatewayError("upgrade_required", "Cannot GET this: use POST, or open a WebSocket", {
    headers: { upgrade: "websocket", connection: "upgrade" },
  });
}

/** Returns the error at which clients fall back to plain requests. */
function noSockets(why: string): GatewayError {
  return new GatewayError("upgrade_required", `Cannot open a WebSocket: ${why}; use POST`, {
    headers: { upgrade: "HTTP/1.1", connection: "upgrade" },
  });
}
