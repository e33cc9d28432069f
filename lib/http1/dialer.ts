/** New connections to one host, over TCP or TLS. What authorities are trusted is the runtime's affair, as it is for `fetch`. */
import { HttpVersionError } from "./errors.ts";

/** A connection of the runtime. */
export type Socket = Deno.TcpConn | Deno.TlsConn;

/** Where connections go. */
export interface HostAddress {
  /** IPv6 addresses without brackets. */
  hostname: string;
  port: number;
  tls: boolean;
}

/** Decides which addresses a host may have. */
export interface AddressPolicy {
  /** Addresses of a host, to be tried in this order. @throws where it has none, or one that is refused */
  resolve(hostname: string): Promise<readonly string[]>;
  /** @throws where the host may not have this address */
  check(hostname: string, address: string): void;
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

/** Makes connections to one host. */
export class Dialer {
  readonly #address: HostAddress;
  readonly #policy: AddressPolicy;
  /** Since when handshakes that nobody waits for are under way. */
  readonly #abandoned = new Map<Deno.TlsConn, number>();
  /** Ends the making of connections that nobody waits for. */
  readonly #lingering = new Set<() => void>();

  constructor(address: HostAddress, policy: AddressPolicy) {
    this.#address = address;
    this.#policy = policy;
  }

  /** @throws where no connection can be made or none may be; what the signal was aborted with */
  async dial(signal: AbortSignal): Promise<Socket> {
    const { hostname, tls } = this.#address;
    if (this.#abandoned.size >= ABANDONED) this.#forgetOld();
    if (this.#abandoned.size >= ABANDONED) throw new Error("Cannot connect: too many TLS handshakes have not ended");
    const tcp = await this.#connect(signal);
    try {
      signal.throwIfAborted();
      tcp.setNoDelay(true);
      // A model may think for longer than a router on the way remembers a silent connection.
      tcp.setKeepAlive(true);
      if (!tls) return tcp;
      const connection = await Deno.startTls(tcp, { hostname, alpnProtocols: ["http/1.1"] });
      await this.#shakeHands(connection, signal);
      return connection;
    } catch (error) {
      closeQuietly(tcp);
      throw error;
    }
  }

  /** Ends the making of connections. */
  close(): void {
    for (const connection of this.#abandoned.keys()) connection.close();
    this.#abandoned.clear();
    for (const stop of this.#lingering) stop();
  }

  async #connectTo(hostname: string, signal: AbortSignal): Promise<Deno.TcpConn> {
    const { port } = this.#address;
    const own = new AbortController();
    const made = Deno.connect({ hostname, port, signal: own.signal });
    try {
      return await orLeave(made, signal);
    } catch (error) {
      if (!signal.aborted) throw error;
      const stop = () => own.abort();
      const timer = setTimeout(stop, LINGER_MS);
      Deno.unrefTimer(timer);
      this.#lingering.add(stop);
      const end = () => {
        clearTimeout(timer);
        this.#lingering.delete(stop);
      };
      made.then((connection) => connection.close()).then(end, end);
      throw error;
    }
  }

  /** Connects to an address that was judged: a second look-up could find another one. */
  async #connect(signal: AbortSignal): Promise<Deno.TcpConn> {
    const { hostname } = this.#address;
    let failure: unknown;
    for (const address of await orLeave(this.#addresses(), signal)) {
      try {
        return await this.#connectTo(address, signal);
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        if (isForbidden(error)) return await this.#connectByName(signal);
        failure ??= error;
      }
    }
    throw failure ?? new Error(`${hostname} has no address`);
  }

  async #addresses(): Promise<readonly string[]> {
    const { hostname } = this.#address;
    try {
      return await this.#policy.resolve(hostname);
    } catch (error) {
      if (!isForbidden(error)) throw error;
      return [hostname];
    }
  }

  /** Where the process may connect to the name alone, it is judged by where the connection leads, before a byte is sent. */
  async #connectByName(signal: AbortSignal): Promise<Deno.TcpConn> {
    const { hostname } = this.#address;
    const connection = await this.#connectTo(hostname, signal);
    try {
      this.#policy.check(hostname, connection.remoteAddr.hostname);
      return connection;
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  async #shakeHands(connection: Deno.TlsConn, signal: AbortSignal): Promise<void> {
    const shaken = connection.handshake();
    try {
      await orLeave(shaken, signal);
    } catch (error) {
      if (!signal.aborted) {
        connection.close();
        throw isWithoutHttp1(error)
          ? new HttpVersionError("The peer does not offer HTTP/1.1", { cause: error })
          : error;
      }
      this.#abandoned.set(connection, performance.now());
      const end = () => void (this.#abandoned.delete(connection) && connection.close());
      shaken.then(end, end);
      throw error;
    }
  }

  #forgetOld(): void {
    const since = performance.now() - ABANDONED_MS;
    for (const [connection, at] of this.#abandoned) {
      if (at > since) return;
      this.#abandoned.delete(connection);
      connection.close();
    }
  }
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
