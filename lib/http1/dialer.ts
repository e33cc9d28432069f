/** New connections to one host, over TCP or TLS. The runtime decides which authorities are trusted, as for `fetch`. */
import { HttpVersionError } from "./errors.ts";

/** A connection of the runtime. */
export type Socket = Deno.TcpConn | Deno.TlsConn;

/** Address of a host. */
export interface HostAddress {
  /** IPv6 addresses without brackets. */
  hostname: string;
  port: number;
  tls: boolean;
}

/** Decides which addresses a host may have. */
export interface AddressPolicy {
  /** Returns the addresses of a host in the order to try them. @throws if it has none, or one that is refused */
  resolve(hostname: string): Promise<readonly string[]>;
  /** @throws where the host may not have this address */
  check(hostname: string, address: string): void;
}

/**
 * Most abandoned TLS handshakes. The runtime frees the socket of a handshake only after its end, so that a host that stays
 * silent in it would take one descriptor per request.
 */
const ABANDONED = 64;
/** Time that an abandoned handshake counts, in milliseconds. */
const ABANDONED_MS = 600_000;

/**
 * Time that an abandoned connection may take to open, so that it can be closed, in milliseconds. An abort at the moment
 * of success would leak the socket: Deno 2.9 does not free it.
 */
const LINGER_MS = 1_000;

/** Makes connections to one host. */
export class Dialer {
  readonly #address: HostAddress;
  readonly #policy: AddressPolicy;
  /** Start times of abandoned handshakes. */
  readonly #abandoned = new Map<Deno.TlsConn, number>();
  /** Aborts the opening of abandoned connections. */
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

  /** Aborts the open connection attempts. */
  close(): void {
    for (const connection of this.#abandoned.keys()) connection.close();
    this.#abandoned.clear();
    for (const stop of this.#lingering) stop();
  }

  async #connectTo(hostname: string, signal: AbortSignal): Promise<Deno.TcpConn> {
    const { port } = this.#address;
    const own = new AbortController();
    const connecting = Deno.connect({ hostname, port, signal: own.signal });
    try {
      return await orLeave(connecting, signal);
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
      connecting.then((connection) => connection.close()).then(end, end);
      throw error;
    }
  }

  /** Connects to the addresses that were checked: a second look-up could find others. */
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

  /** A process that may connect only by name checks the address of the open connection before it sends a byte. */
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

/** True for the alert of a host that supports none of the offered protocols (RFC 7301, section 3.2). */
function isWithoutHttp1(error: unknown): boolean {
  return error instanceof Error && error.message.includes("NoApplicationProtocol");
}

/** Closes a connection that TLS may have closed already. */
function closeQuietly(tcp: Deno.TcpConn): void {
  try {
    tcp.close();
  } catch {
    // TLS closed it.
  }
}

/** Waits for a promise. @throws the signal's reason where it aborts first */
async function orLeave<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const leave = () => aborted.reject(signal.reason);
  if (signal.aborted) leave();
  signal.addEventListener("abort", leave, { once: true });
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", leave);
  }
}

/** True where the process lacks a permission. */
function isForbidden(error: unknown): boolean {
  return error instanceof Deno.errors.NotCapable;
}
