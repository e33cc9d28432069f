/** New connections to one host, over TCP or TLS. What authorities are trusted is the runtime's affair, as it is for `fetch`. */

/** A connection of the runtime. */
export type Socket = Deno.TcpConn | Deno.TlsConn;

/** Where connections go. */
export interface Address {
  /** Without brackets, where it is an address of IPv6. */
  hostname: string;
  port: number;
  tls: boolean;
}

/** Makes connections to one host. */
export interface Dialler {
  /** @throws where no connection can be made; what the signal was aborted with */
  dial(signal: AbortSignal): Promise<Socket>;
  close(): void;
}

/**
 * Most TLS handshakes that nobody waits for any more. The runtime frees the socket of a handshake only after its end, so
 * that a host that begins them and stays silent would take one descriptor per call.
 */
const ABANDONED = 64;
/** How long one of them counts, in milliseconds. */
const ABANDONED_MS = 600_000;

/** Without a connection. */
export function createDialler(address: Address): Dialler {
  const { hostname, port, tls } = address;
  const abandoned = new Map<Deno.TlsConn, number>();

  function forgetOld(): void {
    const since = performance.now() - ABANDONED_MS;
    for (const [connection, at] of abandoned) {
      if (at > since) return;
      abandoned.delete(connection);
      connection.close();
    }
  }

  async function shakeHands(connection: Deno.TlsConn, signal: AbortSignal): Promise<void> {
    const left = Promise.withResolvers<never>();
    const leave = () => left.reject(signal.reason);
    signal.addEventListener("abort", leave, { once: true });
    const shaken = connection.handshake();
    try {
      await Promise.race([shaken, left.promise]);
    } catch (error) {
      if (!signal.aborted) {
        connection.close();
        throw error;
      }
      abandoned.set(connection, performance.now());
      const end = () => void (abandoned.delete(connection) && connection.close());
      shaken.then(end, end);
      throw signal.reason;
    } finally {
      signal.removeEventListener("abort", leave);
    }
  }

  return {
    async dial(signal) {
      if (abandoned.size >= ABANDONED) forgetOld();
      if (abandoned.size >= ABANDONED) throw new Error("Cannot connect: too many TLS handshakes have not ended");
      const tcp = await connectTcp(address, signal);
      try {
        signal.throwIfAborted();
        tcp.setNoDelay(true);
        // A model may think for longer than a router on the way remembers a silent connection.
        tcp.setKeepAlive(true);
      } catch (error) {
        tcp.close();
        throw error;
      }
      if (!tls) return tcp;
      const connection = await Deno.startTls(tcp, { hostname, alpnProtocols: ["http/1.1"] });
      await shakeHands(connection, signal);
      return connection;
    },
    close() {
      for (const connection of abandoned.keys()) connection.close();
      abandoned.clear();
    },
  };

  async function connectTcp({ hostname }: Address, signal: AbortSignal): Promise<Deno.TcpConn> {
    try {
      return await Deno.connect({ hostname, port, signal });
    } catch (error) {
      // Older runtimes try the first address only.
      const others = signal.aborted ? [] : await addressesOf(hostname);
      for (const other of others) {
        signal.throwIfAborted();
        const connection = await Deno.connect({ hostname: other, port, signal }).catch(() => undefined);
        if (connection !== undefined) return connection;
      }
      throw signal.aborted ? signal.reason : error;
    }
  }
}

/** The addresses of a name that has several, but for the first. */
async function addressesOf(hostname: string): Promise<string[]> {
  if (/^[\d.]+$|:/.test(hostname)) return [];
  const { lookup } = await import("node:dns/promises");
  const found = await lookup(hostname, { all: true }).catch(() => []);
  return found.slice(1).map(({ address }) => address);
}
