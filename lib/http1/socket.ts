/** New connections to one host, over TCP or TLS. What authorities are trusted is the runtime's affair, as it is for `fetch`. */
import { type AddressGuard, allowedAddresses, type Lookup, metadataGuard } from "../upstreams/address_guard.ts";
import { OtherVersion } from "./broken_answer.ts";

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
  /** @throws where no connection can be made or none may be; what the signal was aborted with */
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

/**
 * How long a connection that nobody waits for any more may still be made, to be closed then, in milliseconds. To abort the
 * making while it succeeds would lose the socket for ever: Deno 2.9 does not free it.
 */
const LINGER_MS = 1_000;

/** How the addresses of a host are found and judged; absent: by the system, and metadata addresses are refused. */
export interface Judges {
  guard?: AddressGuard | undefined;
  lookup?: Lookup | undefined;
}

/** Without a connection. */
export function createDialler({ hostname, port, tls }: Address, judges: Judges = {}): Dialler {
  const abandoned = new Map<Deno.TlsConn, number>();
  /** Ends the making of connections that nobody waits for. */
  const lingering = new Set<() => void>();

  async function connectTo(hostname: string, signal: AbortSignal): Promise<Deno.TcpConn> {
    const own = new AbortController();
    const made = Deno.connect({ hostname, port, signal: own.signal });
    try {
      return await orLeave(made, signal);
    } catch (error) {
      if (!signal.aborted) throw error;
      const stop = () => own.abort();
      const timer = setTimeout(stop, LINGER_MS);
      Deno.unrefTimer(timer);
      lingering.add(stop);
      const end = () => {
        clearTimeout(timer);
        lingering.delete(stop);
      };
      made.then((connection) => connection.close()).then(end, end);
      throw error;
    }
  }

  /** Connects to an address that was judged: a second look-up could find another one. */
  async function connect(signal: AbortSignal): Promise<Deno.TcpConn> {
    let failure: unknown;
    for (const address of await orLeave(addressesOf(), signal)) {
      try {
        return await connectTo(address, signal);
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        if (isForbidden(error)) return await connectByName(signal);
        failure ??= error;
      }
    }
    throw failure ?? new Error(`${hostname} has no address`);
  }

  async function addressesOf(): Promise<readonly string[]> {
    try {
      return await allowedAddresses(hostname, judges);
    } catch (error) {
      if (!isForbidden(error)) throw error;
      return [hostname];
    }
  }

  /** Where the process may connect to the name alone, it is judged by where the connection leads, before a byte is sent. */
  async function connectByName(signal: AbortSignal): Promise<Deno.TcpConn> {
    const connection = await connectTo(hostname, signal);
    try {
      (judges.guard ?? metadataGuard)(hostname, connection.remoteAddr.hostname);
      return connection;
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  async function shakeHands(connection: Deno.TlsConn, signal: AbortSignal): Promise<void> {
    const shaken = connection.handshake();
    try {
      await orLeave(shaken, signal);
    } catch (error) {
      if (!signal.aborted) {
        connection.close();
        throw isWithoutHttp1(error) ? new OtherVersion("The peer does not offer HTTP/1.1", { cause: error }) : error;
      }
      abandoned.set(connection, performance.now());
      const end = () => void (abandoned.delete(connection) && connection.close());
      shaken.then(end, end);
      throw error;
    }
  }

  function forgetOld(): void {
    const since = performance.now() - ABANDONED_MS;
    for (const [connection, at] of abandoned) {
      if (at > since) return;
      abandoned.delete(connection);
      connection.close();
    }
  }

  return {
    async dial(signal) {
      if (abandoned.size >= ABANDONED) forgetOld();
      if (abandoned.size >= ABANDONED) throw new Error("Cannot connect: too many TLS handshakes have not ended");
      const tcp = await connect(signal);
      try {
        signal.throwIfAborted();
        tcp.setNoDelay(true);
        // A model may think for longer than a router on the way remembers a silent connection.
        tcp.setKeepAlive(true);
        if (!tls) return tcp;
        const connection = await Deno.startTls(tcp, { hostname, alpnProtocols: ["http/1.1"] });
        await shakeHands(connection, signal);
        return connection;
      } catch (error) {
        closeQuietly(tcp);
        throw error;
      }
    },
    close() {
      for (const connection of abandoned.keys()) connection.close();
      abandoned.clear();
      for (const stop of lingering) stop();
    },
  };
}

/** The alert by which a host says that it speaks none of the protocols that are offered to it (RFC 7301, 3.2). */
function isWithoutHttp1(error: unknown): boolean {
  return error instanceof Error && error.message.includes("NoApplicationProtocol");
}

/** One that TLS has taken over is closed with it. */
function closeQuietly(tcp: Deno.TcpConn): void {
  try {
    tcp.close();
  } catch {
    // There is nothing left to close.
  }
}

/** What a promise settles with, or what the signal is aborted with before. */
async function orLeave<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const left = Promise.withResolvers<never>();
  const leave = () => left.reject(signal.reason);
  if (signal.aborted) leave();
  signal.addEventListener("abort", leave, { once: true });
  try {
    return await Promise.race([promise, left.promise]);
  } finally {
    signal.removeEventListener("abort", leave);
  }
}

/** A right that the process does not have. */
function isForbidden(error: unknown): boolean {
  return error instanceof Deno.errors.NotCapable;
}
