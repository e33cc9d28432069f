/** Opens connections to a host over TCP or TLS. TLS trusts the same authorities as the runtime's `fetch`. */
import { abortable } from "../abort.ts";
import type { HostAddress } from "../host_address.ts";
import { HttpVersionError } from "./errors.ts";

/** A connection of the runtime. */
export type Socket = Deno.TcpConn | Deno.TlsConn;

/** Decides which addresses a host may have. */
export interface AddressPolicy {
  /** Returns the addresses of a host in the order to try them. @throws if it has none, or one that is refused */
  resolve(hostname: string): Promise<readonly string[]>;
  /** Checks one address. @throws if the host may not have it */
  check(hostname: string, address: string): void;
}

/**
 * Maximum number of abandoned TLS handshakes at the same time. The runtime frees the socket of a handshake only when
 * the handshake ends, so a host that never answers would take one descriptor per request.
 */
const MAX_ABANDONED = 64;
/** Time after which an abandoned handshake is closed and no longer counts, in milliseconds. */
const ABANDONED_MS = 600_000;

/**
 * Time for which an abandoned connection may still open, so that it can be closed, in milliseconds. An abort at the
 * moment of success would leak the socket, because Deno 2.9 does not free it.
 */
const LINGER_MS = 1_000;

/** Longest time for an address to accept a connection while there are others to try, in milliseconds. */
const ADDRESS_MS = 1_000;

/** Opens connections to one host. */
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

  /** Opens a connection. @throws if that fails or is not allowed; the signal's reason after an abort */
  async dial(signal: AbortSignal): Promise<Socket> {
    const { hostname, tls } = this.#address;
    if (this.#abandoned.size >= MAX_ABANDONED) this.#closeOldHandshakes();
    if (this.#abandoned.size >= MAX_ABANDONED) {
      throw new Error("Cannot connect: too many TLS handshakes have not ended");
    }
    const tcp = await this.#connect(signal);
    try {
      signal.throwIfAborted();
      tcp.setNoDelay(true);
      // Routers drop silent connections, and a model may think for longer than that without sending anything.
      tcp.setKeepAlive(true);
      if (!tls) return tcp;
      const connection = await Deno.startTls(tcp, { hostname, alpnProtocols: ["http/1.1"] });
      await this.#completeHandshake(connection, signal);
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
    const lingering = new AbortController();
    const connecting = Deno.connect({ hostname, port, signal: lingering.signal });
    try {
      return await abortable(connecting, signal);
    } catch (error) {
      if (!signal.aborted) throw error;
      const stop = () => lingering.abort();
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

  /**
   * Connects to one of the checked addresses. The host's name is not resolved again, because the result could differ.
   */
  async #connect(signal: AbortSignal): Promise<Deno.TcpConn> {
    const { hostname } = this.#address;
    let failure: unknown;
    const addresses = await abortable(this.#addresses(), signal);
    for (const [index, address] of addresses.entries()) {
      const isLast = index === addresses.length - 1;
      try {
        return await this.#connectTo(
          address,
          isLast ? signal : AbortSignal.any([signal, AbortSignal.timeout(ADDRESS_MS)]),
        );
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

  /**
   * Connects by name if the process has no permission for addresses. The address is checked before any byte is sent.
   */
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

  async #completeHandshake(connection: Deno.TlsConn, signal: AbortSignal): Promise<void> {
    const handshake = connection.handshake();
    try {
      await abortable(handshake, signal);
    } catch (error) {
      if (!signal.aborted) {
        connection.close();
        // The TLS alert of a host that supports none of the offered protocols (RFC 7301, section 3.2).
        const isWithoutHttp1 = error instanceof Error && error.message.includes("NoApplicationProtocol");
        throw isWithoutHttp1 ? new HttpVersionError("The peer does not offer HTTP/1.1", { cause: error }) : error;
      }
      this.#abandoned.set(connection, performance.now());
      const end = () => void (this.#abandoned.delete(connection) && connection.close());
      handshake.then(end, end);
      throw error;
    }
  }

  #closeOldHandshakes(): void {
    const oldest = performance.now() - ABANDONED_MS;
    for (const [connection, abandonedAt] of this.#abandoned) {
      if (abandonedAt > oldest) return;
      this.#abandoned.delete(connection);
      connection.close();
    }
  }
}

/** Closes a connection that TLS may already have closed. */
function closeQuietly(tcp: Deno.TcpConn): void {
  try {
    tcp.close();
  } catch {
    // TLS closed it.
  }
}

/** Returns true for the error of a process that lacks a permission of Deno. */
function isForbidden(error: unknown): boolean {
  return error instanceof Deno.errors.NotCapable;
}
