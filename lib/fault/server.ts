/**
 * The fault server: an HTTP server on real sockets that misbehaves on request, as an upstream for tests of failover.
 */
import { GatewayError } from "../errors.ts";
import { connectionOver, type FaultConnection, type RawRequest, RequestReader } from "./connection.ts";
import type { Codec } from "../protocols/codec.ts";
import type { RequestedFault } from "./faults.ts";
import { type AnswerEnding, playAnswer } from "./play_answer.ts";
import { type FaultRequest, parseRequest } from "./fault_request.ts";

/** Options of the server. */
export interface FaultServerOptions {
  hostname: string;
  /** 0: any free port. */
  port: number;
  /** Codecs of the text protocols that it speaks. */
  codecs: readonly Codec[];
  /** The fault of every answer; absent: each request asks for its own. */
  always?: RequestedFault;
  /** Called for each request that could be parsed, before its answer. */
  onRequest?: (request: ObservedRequest) => void;
}

/** A request as `onRequest` gets it. */
export interface ObservedRequest {
  path: string;
  model: string;
  stream: boolean;
  fault: RequestedFault | undefined;
}

/** Starts a fault server. @throws {Deno.errors.AddrInUse} and similar errors if it cannot listen */
export function startFaultServer(parts: FaultServerOptions): FaultServer {
  return new FaultServer(parts);
}

/** A running fault server. Disposing of it closes its connections and waits for them. */
export class FaultServer implements AsyncDisposable {
  readonly #parts: FaultServerOptions;
  readonly #listener: Deno.TcpListener;
  /** Aborts when the server stops. */
  readonly #stopping = new AbortController();
  readonly #open = new Set<Deno.TcpConn>();
  readonly #serving = new Set<Promise<void>>();
  #busy = 0;
  #sent = 0;
  readonly #accepting: Promise<void>;
  readonly hostname: string;
  readonly port: number;
  /** Such as `http://127.0.0.1:40123`. */
  readonly url: string;

  constructor(parts: FaultServerOptions) {
    this.#parts = parts;
    this.#listener = Deno.listen({ hostname: parts.hostname, port: parts.port });
    this.#accepting = this.#accept();
    const { hostname, port } = this.#listener.addr;
    this.hostname = hostname;
    this.port = port;
    this.url = `http://${parts.hostname.includes(":") ? `[${parts.hostname}]` : parts.hostname}:${port}`;
  }

  get open(): number {
    return this.#open.size;
  }

  get busy(): number {
    return this.#busy;
  }

  /** Bytes and characters written to all connections so far. */
  get sent(): number {
    return this.#sent;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    this.#stopping.abort();
    for (const connection of this.#open) close(connection);
    await this.#accepting;
    await Promise.all(this.#serving);
  }

  async #accept(): Promise<void> {
    for await (const connection of this.#listener) {
      this.#open.add(connection);
      const serving = this.#serve(connection);
      this.#serving.add(serving);
      void serving.then(() => this.#serving.delete(serving));
    }
  }

  async #serve(connection: Deno.TcpConn): Promise<void> {
    const reader = new RequestReader(connection);
    try {
      for (let ending: AnswerEnding = "open"; ending === "open";) {
        const received = await reader.request();
        if (received === undefined) return;
        ending = await this.#answer(received, { connection, reader });
      }
    } catch {
      // The peer closed the connection, or the server stops.
    } finally {
      this.#open.delete(connection);
      close(connection);
    }
  }

  async #answer(
    { request, isWhole }: { request: RawRequest; isWhole: boolean },
    { connection, reader }: { connection: Deno.TcpConn; reader: RequestReader },
  ): Promise<AnswerEnding> {
    const parsed = parse(request, this.#parts.codecs);
    if (parsed instanceof GatewayError || parsed === undefined) {
      if (!isWhole) await reader.skipBody();
      const never = new AbortController();
      await connectionOver(connection, never.signal).send(refusal(parsed));
      return "closed";
    }
    const fault = this.#parts.always ?? parsed.fault;
    const { path } = request;
    this.#parts.onRequest?.({ path, model: parsed.model, stream: parsed.stream, fault });
    const closed = new AbortController();
    const onClose = () => closed.abort(new Error("The peer closed the connection"));
    this.#stopping.signal.addEventListener("abort", onClose, { once: true });
    // A reset needs the last byte unread, so this connection cannot be watched for the peer's close.
    if (fault?.name !== "reset" && !isWhole) await reader.skipBody();
    if (fault?.name !== "reset") void reader.whenClosed().then((isClosed) => isClosed && onClose());
    this.#busy++;
    try {
      const counted = this.#counted(connectionOver(connection, closed.signal));
      return await playAnswer(counted, { path, request: parsed, fault });
    } finally {
      this.#busy--;
      this.#stopping.signal.removeEventListener("abort", onClose);
    }
  }

  #counted(connection: FaultConnection): FaultConnection {
    return {
      ...connection,
      send: async (text) => {
        await connection.send(text);
        this.#sent += text.length;
      },
    };
  }
}

/** Parses a request and returns its error, if any. */
function parse(request: RawRequest, codecs: readonly Codec[]): FaultRequest | GatewayError | undefined {
  try {
    return parseRequest(request, codecs);
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
}

/** Writes the answer to a request that cannot be parsed; without an error, because its path is unknown. */
function refusal(error: GatewayError | undefined): string {
  const body = JSON.stringify({ error: { message: error?.message ?? "Not found", type: "invalid_request_error" } });
  const length = new TextEncoder().encode(body).length;
  return `HTTP/1.1 ${error?.status ?? 404} Rehearsal\r\ncontent-type: application/json\r\n` +
    `content-length: ${length}\r\nconnection: close\r\n\r\n${body}`;
}

function close(connection: Deno.TcpConn): void {
  try {
    connection.close();
  } catch {
    // The peer closed it.
  }
}
