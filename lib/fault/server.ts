/** An HTTP server that misbehaves on request, over real sockets: an upstream for rehearsals. */
import { GatewayError } from "../errors.ts";
import { type Line, lineOver, type RawRequest, Reader } from "./connection.ts";
import { type Fault, faultOfModel, findFault } from "./faults.ts";
import { type Ending, play } from "./play.ts";
import { type Spoken, understand } from "./spoken.ts";

/** What the server is started with. */
export interface FaultServerOptions {
  hostname: string;
  /** 0 takes a free one. */
  port: number;
  /** A fault for every request, whatever it asks for. */
  always?: Fault;
  /** Told of each request when it is understood. */
  heard?: (heard: Heard) => void;
}

/** One request that came. */
export interface Heard {
  path: string;
  model: string;
  stream: boolean;
  fault: Fault | undefined;
}

/** A running server. */
export interface FaultServer extends AsyncDisposable {
  hostname: string;
  port: number;
  /** Such as `http://127.0.0.1:40123`. */
  url: string;
  /** Connections that are open. */
  readonly open: number;
  /** Answers that are under way. */
  readonly busy: number;
  /** Bytes that were handed to connections. */
  readonly sent: number;
}

/** Starts a server. @throws {Deno.errors.AddrInUse} and its kin, where it cannot listen */
export function startFaultServer({ hostname, port, always, heard = () => {} }: FaultServerOptions): FaultServer {
  const listener = Deno.listen({ hostname, port });
  const over = new AbortController();
  const open = new Set<Deno.TcpConn>();
  const served: Set<Promise<void>> = new Set();
  let busy = 0;
  let sent = 0;

  async function serve(connection: Deno.TcpConn): Promise<void> {
    const reader = new Reader(connection);
    try {
      for (let ending: Ending = "open"; ending === "open";) {
        const asked = await reader.request();
        if (asked === undefined) return;
        ending = await answer(asked, { connection, reader });
      }
    } catch {
      // The peer has gone, or the server ends.
    } finally {
      open.delete(connection);
      close(connection);
    }
  }

  async function answer(
    { request, isWhole }: { request: RawRequest; isWhole: boolean },
    { connection, reader }: { connection: Deno.TcpConn; reader: Reader },
  ): Promise<Ending> {
    const spoken = read(request);
    if (spoken instanceof GatewayError || spoken === undefined) {
      if (!isWhole) await reader.rest();
      const refused = new AbortController();
      await lineOver(connection, refused.signal).send(refusal(spoken));
      return "closed";
    }
    const fault = always ?? findFault(spoken.text, "wire") ?? faultOfModel(spoken.model, "wire");
    heard({ path: request.path, model: spoken.model, stream: spoken.stream, fault });
    const gone = new AbortController();
    const leave = () => gone.abort(new Error("The peer has gone"));
    over.signal.addEventListener("abort", leave, { once: true });
    // A connection that is to be reset keeps its last byte unread, and nobody looks whether its peer has gone.
    if (fault?.name !== "reset" && !isWhole) await reader.rest();
    if (fault?.name !== "reset") void reader.gone().then((gone) => gone && leave());
    busy++;
    try {
      return await play(counted(lineOver(connection, gone.signal)), { request, spoken, fault });
    } finally {
      busy--;
      over.signal.removeEventListener("abort", leave);
    }
  }

  function counted(line: Line): Line {
    return {
      ...line,
      async send(text) {
        await line.send(text);
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

function read(request: RawRequest): Spoken | GatewayError | undefined {
  try {
    return understand(request);
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
}

/** The answer to what is no request of any protocol. */
function refusal(error: GatewayError | undefined): string {
  const body = JSON.stringify({
    error: { message: error?.message ?? "Nothing is here", type: "invalid_request_error" },
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
    // It is closed already.
  }
}
