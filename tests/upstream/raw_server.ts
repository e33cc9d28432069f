/** A server that answers with whatever bytes it is told, for what no real server says. */

/** What happens on one connection after a request has come in whole. */
export type RawPlay = (connection: Deno.TcpConn, request: { head: string; body: string }) => Promise<void>;

/** A running server. */
export interface RawServer extends AsyncDisposable {
  /** Such as `http://127.0.0.1:40123`. */
  url: string;
  /** Connections accepted so far. */
  accepted: number;
}

/** Starts a server. A connection is closed when its play is over. */
export function startRaw(play: RawPlay): RawServer {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const open = new Set<Deno.TcpConn>();
  const plays: Promise<void>[] = [];
  const server: RawServer = {
    url: `http://127.0.0.1:${listener.addr.port}`,
    accepted: 0,
    async [Symbol.asyncDispose]() {
      listener.close();
      for (const connection of open) close(connection);
      await accepting;
      await Promise.all(plays);
    },
  };
  const accepting = (async () => {
    for await (const connection of listener) {
      server.accepted++;
      open.add(connection);
      plays.push(
        readRequest(connection).then((request) => request && play(connection, request)).catch(() => {}).finally(() => {
          open.delete(connection);
          close(connection);
        }),
      );
    }
  })();
  return server;
}

/** Writes a text, whole. */
export async function say(connection: Deno.TcpConn, text: string): Promise<void> {
  const bytes = new TextEncoder().encode(text);
  for (let at = 0; at < bytes.length;) at += await connection.write(bytes.subarray(at));
}

/** Head of an answer that is sent in chunks. */
export const CHUNKED_EVENTS =
  "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/** One chunk. */
export function chunk(text: string): string {
  return `${new TextEncoder().encode(text).length.toString(16)}\r\n${text}\r\n`;
}

function close(connection: Deno.TcpConn): void {
  try {
    connection.close();
  } catch {
    // It is closed already.
  }
}

async function readRequest(connection: Deno.TcpConn): Promise<{ head: string; body: string } | undefined> {
  const buffer = new Uint8Array(65_536);
  let text = "";
  while (true) {
    const size = await connection.read(buffer);
    if (size === null) return undefined;
    text += new TextDecoder("latin1").decode(buffer.subarray(0, size));
    const end = text.indexOf("\r\n\r\n");
    if (end < 0) continue;
    const length = Number(/^content-length: *(\d+)/im.exec(text.slice(0, end))?.[1] ?? 0);
    if (text.length >= end + 4 + length) return { head: text.slice(0, end), body: text.slice(end + 4) };
  }
}
