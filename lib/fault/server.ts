/** An HTTP server that misbehaves on request, over real sockets: an upstream for rehearsals of failover. */
import { GatewayError } from "../errors.ts";
import { connectionOver, type FaultConnection, type RawRequest, RequestReader } from "./connection.ts";
import type { Codec } from "../protocols/codec.ts";
import type { RequestedFault } from "./faults.ts";
import { type AnswerEnding, playAnswer } from "./play_answer.ts";
import { type FaultRequest, parseRequest } from "./fault_request.ts";

/** Options of the server. */
export interface FaultServerOptions {
  hostname: string;
  /** 0: a free one. */
  port: number;
  /** Text protocols that it speaks. */
  codecs: readonly Codec[];
  /** The fault of every request; absent: the one that each asks for. */
  always?: RequestedFault;
  /** Called for each request that was read. */
  onRequest?: (request: ObservedRequest) => void;
}

/** A request as `onRequest` gets it. */
export interface ObservedRequest {
  path: string;
  model: string;
  stream: boolean;
  fault: RequestedFault | undefined;
}

/** A running server. */
export interface FaultServer extends AsyncDisposable {
  hostname: string;
  port: number;
  /** Such as `http://127.0.0.1:40123`. */
  url: string;
  /** Open connections. */
  readonly open: number;
  /** Answers under way. */
  readonly busy: number;
  /** Bytes written to connections. */
  readonly sent: number;
}

/** Starts a server. @throws {Deno.errors.AddrInUse} and similar errors where it cannot listen */
export function startFaultServer({ hostname, port, codecs, always, onRequest }: FaultServerOptions): FaultServer {
  const listener = Deno.listen({ hostname, port });
  const over = new AbortController();
  const open = new Set<Deno.TcpConn>();
  const served: Set<Promise<void>> = new Set();
  let busy = 0;
  let sent = 0;

  async function serve(connection: Deno.TcpConn): Promise<void> {
    const reader = new RequestReader(connection);
    try {
      for (let ending: AnswerEnding = "open"; ending === "open";) {
        const asked = await reader.request();
        if (asked === undefined) return;
        ending = await answer(asked, { connection, reader });
      }
    } catch {
      // The peer closed the connection, or the server ends.
    } finally {
      open.delete(connection);
      close(connection);
    }
  }

  async function answer(
    { request, isWhole }: { request: RawRequest; isWhole: boolean },
    { connection, reader }: { connection: Deno.TcpConn; reader: RequestReader },
  ): Promise<AnswerEnding> {
    const parsed = parse(request, codecs);
    if (parsed instanceof GatewayError || parsed === undefined) {
      if (!isWhole) await reader.rest();
      const refused = new AbortController();
      await connectionOver(connection, refused.signal).send(refusal(parsed));
      return "closed";
    }
    const fault = always ?? parsed.fault;
    const { path } = request;
    onRequest?.({ path, model: parsed.model, stream: parsed.stream, fault });
    const gone = new AbortController();
    const leave = () => gone.abort(new Error("The peer closed the connection"));
    over.signal.addEventListener("abort", leave, { once: true });
    // A reset needs the last byte unread, so that the end of such a connection cannot be watched.
    if (fault?.name !== "reset" && !isWhole) await reader.rest();
    if (fault?.name !== "reset") void reader.gone().then((gone) => gone && leave());
    busy++;
    try {
      return await playAnswer(counted(connectionOver(connection, gone.signal)), { path, request: parsed, fault });
    } finally {
      busy--;
      over.signal.removeEventListener("abort", leave);
    }
  }

  function counted(connection: FaultConnection): FaultConnection {
    return {
      ...connection,
      async send(text) {
        await connection.send(text);
        sent += text.length;
      },
    };
  }

  const accepting = (async () => {
    for await (const connection of listener) {
      open.add(connection);
      const serving = serve(connection);
      served.add(serving);
      void serving.then(() => served.delete(serving));
    }
  })();

  return {
    hostname: listener.addr.hostname,
    port: listener.addr.port,
    url: `http://${hostname.includes(":") ? `[${hostname}]` : hostname}:${listener.addr.port}`,
    get open() {
      return open.size;
    },
    get busy() {
      return busy;
    },
    get sent() {
      return sent;
    },
    async [Symbol.asyncDispose]() {
      listener.close();
      over.abort();
      for (const connection of open) close(connection);
      await accepting;
      await Promise.all(served);
    },
  };
}

function parse(request: RawRequest, codecs: readonly Codec[]): FaultRequest | GatewayError | undefined {
  try {
    return parseRequest(request, codecs);
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
}

/** The answer to a request of no known protocol. */
function refusal(error: GatewayError | undefined): string {
  const body = JSON.stringify({
    error: { message: error?.message ?? "Not found", type: "invalid_request_error" },
  });
  const length = new TextEncoder().encode(body).length;
  return `HTTP/1.1 ${
    error?.status ?? 404
  } Rehearsal\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n` +
    `connection: close\r\n\r\n${body}`;
}

function close(connection: Deno.TcpConn): void {
  try {
    connection.close();
  } catch {
    // The peer closed it.
  }
}
