/** The connections to one host: keeps idle ones for reuse, and opens new ones. */
import type { HostAddress } from "../host_address.ts";
import { type AddressPolicy, Dialer, type Socket } from "./dialer.ts";
import { MalformedResponse } from "./errors.ts";
import { HEAD_BYTES } from "./response_head.ts";

/** Limits of idle connections. */
export interface PoolOptions {
  /** Maximum number of idle connections. With 0, each request opens a new connection. */
  idleConnections: number;
  /** Longest idle time of a connection, in milliseconds; absent: `PLAIN_IDLE_MS` or `TLS_IDLE_MS`. */
  idleMs?: number | undefined;
  addresses: AddressPolicy;
}

/**
 * Time that an idle connection is kept if its host announces no timeout, in milliseconds. Plain HTTP hosts are often
 * bare servers: uvicorn and Node close after 5 s. Hosts behind TLS have proxies that keep connections for 60 s (cloud
 * load balancers), 75 s (nginx) or longer, and a new handshake takes three round trips.
 */
const PLAIN_IDLE_MS = 4_000;
const TLS_IDLE_MS = 50_000;

/**
 * Age up to which a connection is reused, in milliseconds. A busy connection is never idle for long. Without this limit
 * it would keep leading to an old server after its host name has got another address.
 */
const MAX_AGE_MS = 120_000;

/** Margin before the announced timeout, in milliseconds. A connection this close to its timeout is not reused. */
const TIMEOUT_MARGIN_MS = 1_000;

/** The connections to one host. The most recently used one is taken first, so that the others expire. */
export class ConnectionPool {
  readonly #options: Required<Pick<PoolOptions, "idleConnections" | "idleMs">>;
  readonly #dialer: Dialer;
  /** Idle connections, the most recently used last. */
  readonly #idle: Http1Connection[] = [];
  readonly #ended = (connection: Http1Connection) => this.#drop(connection);
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** True if connections are reused after a response. */
  reusesConnections: boolean;

  constructor(
    address: HostAddress,
    { idleConnections, idleMs = address.tls ? TLS_IDLE_MS : PLAIN_IDLE_MS, addresses }: PoolOptions,
  ) {
    this.#options = { idleConnections, idleMs };
    this.reusesConnections = idleConnections > 0;
    this.#dialer = new Dialer(address, addresses);
  }

  /**
   * Returns an idle connection; undefined if there is none. Connections that their peers closed are already removed.
   */
  take(now = performance.now()): Http1Connection | undefined {
    for (let connection = this.#idle.pop(); connection !== undefined; connection = this.#idle.pop()) {
      if (!isExpired(connection, now)) {
        connection.socket.ref();
        return connection;
      }
      connection.close();
    }
    return undefined;
  }

  /** Opens a connection. @throws as `Dialer.dial` */
  async open(signal: AbortSignal): Promise<Http1Connection> {
    return new Http1Connection(await this.#dialer.dial(signal));
  }

  /**
   * Keeps a connection for reuse after its response was read completely.
   * @param timeoutMs the peer's keep-alive timeout, in milliseconds
   */
  put(connection: Http1Connection, timeoutMs = Infinity): void {
    const now = performance.now();
    const idleMs = Math.min(
      this.#options.idleMs,
      timeoutMs - TIMEOUT_MARGIN_MS,
      MAX_AGE_MS - now + connection.openedAt,
    );
    if (!this.reusesConnections || idleMs <= 0) return connection.close();
    connection.idleSince = now;
    connection.idleMs = idleMs;
    this.#idle.push(connection);
    connection.sleep(this.#ended);
    if (this.#idle.length > this.#options.idleConnections) this.#idle.shift()?.close();
    if (this.#timer === undefined) this.#startTimer();
  }

  /** Closes idle connections, and ends the reuse of others. */
  close(): void {
    this.reusesConnections = false;
    clearTimeout(this.#timer);
    this.#dialer.close();
    for (const connection of this.#idle.splice(0)) connection.close();
  }

  #drop(connection: Http1Connection): void {
    const index = this.#idle.lastIndexOf(connection);
    if (index >= 0) this.#idle.splice(index, 1);
    connection.close();
  }

  #startTimer(): void {
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      const now = performance.now();
      for (const connection of this.#idle.filter((idle) => isExpired(idle, now))) this.#drop(connection);
      if (this.#idle.length > 0) this.#startTimer();
    }, this.#options.idleMs);
    Deno.unrefTimer(this.#timer);
  }
}

function isExpired({ idleSince, idleMs }: Http1Connection, now: number): boolean {
  return now - idleSince >= idleMs;
}

/** Size of a connection's first buffer. Most connections of slow streams never fill it. */
const FIRST_READ_BYTES = 4 * 1024;
/** Size of the buffer after a read that filled it. It becomes larger only for a long head. */
const READ_BYTES = 16 * 1024;

/** A connection that carries one request after another. */
export class Http1Connection {
  /** The socket, for writes, and for reads into other bytes than the buffer, which must be empty. */
  readonly socket: Socket;
  #closed = false;
  /** The pending read of an idle connection, which becomes the first read of the next response. */
  #pendingRead: Promise<number | null> | undefined;
  #onEnd: ((connection: Http1Connection) => void) | undefined;
  /** Called when the pending read ends. If the connection is still idle, it is reported as ended. */
  readonly #endIdle = () => void (this.#pendingRead !== undefined && this.#onEnd?.(this));

  /** Received bytes. Those from `start` to `end` are not yet consumed. */
  buffer = new Uint8Array(FIRST_READ_BYTES);
  start = 0;
  end = 0;
  /** True if a byte of the current response has arrived. */
  received = false;
  /** When the connection was opened, by `performance.now()`. */
  openedAt = performance.now();
  /** When the connection became idle, by `performance.now()`. */
  idleSince = 0;
  /** Longest idle time of the connection, in milliseconds. */
  idleMs = Infinity;

  constructor(socket: Socket) {
    this.socket = socket;
  }

  /**
   * Starts a read after the unconsumed bytes. The caller passes the result to `filled`. Two steps save a promise
   * between the reader and the socket.
   * @throws {MalformedResponse} if the buffer has its largest size; the socket's errors
   */
  fill(): Promise<number | null> {
    const pendingRead = this.#pendingRead;
    if (pendingRead !== undefined) {
      this.#pendingRead = undefined;
      this.start = this.end = 0;
      return pendingRead;
    }
    if (this.start < this.end) this.#makeRoom();
    else {
      if (this.end === this.buffer.length && this.end < READ_BYTES) this.buffer = new Uint8Array(READ_BYTES);
      this.start = this.end = 0;
    }
    return this.socket.read(this.end === 0 ? this.buffer : this.buffer.subarray(this.end));
  }

  /** Records the result of `fill`. @returns false at the end of the connection */
  filled(size: number | null): boolean {
    if (size === null) return false;
    this.end += size;
    this.received = true;
    return true;
  }

  /** Writes all bytes from `start` on. @throws the socket's error if not all of them could be written */
  async write(bytes: Uint8Array, start = 0): Promise<void> {
    for (let written = start; written < bytes.length;) written += await this.socket.write(bytes.subarray(written));
  }

  /** Makes the connection idle. @param onEnd called if the peer closes it or sends anything before it is used again */
  sleep(onEnd: (connection: Http1Connection) => void): void {
    this.#onEnd = onEnd;
    this.received = false;
    this.start = this.end = 0;
    this.#pendingRead = this.socket.read(this.buffer);
    // Idle connections must not keep the process running.
    this.socket.unref();
    this.#pendingRead.then(this.#endIdle, this.#endIdle);
  }

  /** Closes the socket at once. Pending reads and writes fail. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    try {
      this.socket.close();
    } catch {
      // The runtime has already closed it.
    }
  }

  /**
   * Moves unconsumed bytes to the start of the buffer. If the buffer is full of them, it is replaced by one of twice
   * its size.
   */
  #makeRoom(): void {
    if (this.end < this.buffer.length) return;
    const left = this.end - this.start;
    if (left >= HEAD_BYTES) throw new MalformedResponse("The head is too long");
    const buffer = left < this.buffer.length ? this.buffer : new Uint8Array(this.buffer.length * 2);
    if (buffer === this.buffer) buffer.copyWithin(0, this.start, this.end);
    else buffer.set(this.buffer.subarray(this.start, this.end));
    this.buffer = buffer;
    this.start = 0;
    this.end = left;
  }
}
