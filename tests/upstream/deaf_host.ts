/** A host that takes no connection: what comes to it is neither accepted nor refused. */

/** A running host. */
export interface DeafHost extends AsyncDisposable {
  /** Such as `http://127.0.0.1:40123`. */
  url: string;
}

/** Most connections that wait to be accepted, of any system. */
const MOST_WAITING = 10_000;
/** A connection on this machine that takes longer is none, in milliseconds. */
const SLOW_MS = 150;

/** Starts a host whose queue of connections is full, so that the system drops what else comes. */
export async function startDeaf(): Promise<DeafHost> {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  const waiting: Deno.TcpConn[] = [];
  while (waiting.length < MOST_WAITING) {
    try {
      waiting.push(await Deno.connect({ hostname: "127.0.0.1", port, signal: AbortSignal.timeout(SLOW_MS) }));
    } catch {
      break;
    }
  }
  return {
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]() {
      listener.close();
      for (const connection of waiting) connection.close();
      return Promise.resolve();
    },
  };
}
