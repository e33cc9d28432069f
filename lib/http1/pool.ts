/** Connections to one host: idle ones and new ones. */
import { type AddressPolicy, Dialer, type HostAddress, type Socket } from "./dialer.ts";
import { MalformedResponse } from "./errors.ts";
import { HEAD_BYTES } from "./response_head.ts";

/** Limits of idle connections. */
export interface PoolOptions {
  /** Most idle connections. With 0, each request opens its own. */
  idleConnections: number;
  /** In milliseconds; absent: `PLAIN_IDLE_MS` or `TLS_IDLE_MS`. */
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

/** Time before the announced end within which a connection is not used any more, in milliseconds. */
const EARLY_MS = 1_000;

/** The connections to one host. The most recently used one is taken first, so that the others expire. */
export class ConnectionPool {
  readonly #options: Required<Pick<PoolOptions, "idleConnections" | "idleMs">>;
  readonly #dialer: Dialer;
  readonly #idle: Http1Connection[] = [];
  readonly #ended = (connection: Http1Connection) => this.#drop(connection);
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** True where connections are reused. */
  reusesConnections: boolean;

  constructor(
    address: HostAddress,
    { idleConnections, idleMs = address.tls ? TLS_IDLE_MS : PLAIN_IDLE_MS, addresses }: PoolOptions,
  ) {
    this.#options = { idleConnections, idleMs };
    this.reusesConnections = idleConnections > 0;
    this.#dialer = new Dialer(address, addresses);
  }

  /** An idle connection, if there is one. Connections closed by their peers were removed before. */
  take(now = performance.now()): Http1Connection | undefined {
    for (let connection = this.#idle.pop(); connection !== undefined; connection = this.#idle.pop()) {
      if (!isOld(connection, now)) {
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

  /** Keeps a connection whose response was read completely. `keepAliveMs` is the peer's keep-alive timeout. */
  put(connection: Http1Connection, keepAliveMs = Infinity): void {
    const idleMs = Math.min(this.#options.idleMs, keepAliveMs - EARLY_MS);
    if (!this.reusesConnections || idleMs <= 0) return connection.close();
    connection.idleSince = performance.now();
    connection.idleMs = idleMs;
    this.#idle.push(connection);
    connection.sleep(this.#ended);
    if (this.#idle.length > this.#options.idleConnections) this.#idle.shift()?.close();
    if (this.#timer === undefined) this.#arm();
  }

  close(): void {
    this.reusesConnections = false;
    clearTimeout(this.#timer);
    this.#dialer.close();
    for (const connection of this.#idle.splice(0)) connection.close();
  }

  #drop(connection: Http1Connection): void {
    const at = this.#idle.lastIndexOf(connection);
    if (at >= 0) this.#idle.splice(at, 1);
    connection.close();
  }

  #arm(): void {
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      const now = performance.now();
      for (const connection of this.#idle.filter((one) => isOld(one, now))) this.#drop(connection);
      if (this.#idle.length > 0) this.#arm();
    }, this.#options.idleMs);
    Deno.unrefTimer(this.#timer);
  }
}

function isOld({ idleSince, idleMs }: Http1Connection, now: number): boolean {
  return now - idleSince >= idleMs;
}

/** Bytes of a connection's first reads: most connections of slow streams never fill them. */
const FIRST_READ_BYTES = 4 * 1024;
/** Bytes of one read after a read that filled the buffer. It grows further for a long head only. */
const READ_BYTES = 16 * 1024;

/** A connection that carries one request after another. */
export class Http1Connection {
  /** For writes. Reads go through the connection. */
  readonly socket: Socket;
  #closed = false;
  /** The pending read of an idle connection, which becomes the first read of the next response. */
  #readAhead: Promise<number | null> | undefined;
  #onEnd: ((connection: Http1Connection) => void) | undefined;
  /** The pending read ended while the connection was idle. */
  readonly #stirred = () => void (this.#readAhead !== undefined && this.#onEnd?.(this));

  /** Bytes read; those from `start` to `end` are unused. */
  buffer = new Uint8Array(FIRST_READ_BYTES);
  start = 0;
  end = 0;
  /** True when a byte of the present response has arrived. */
  received = false;
  /** Since when it is idle, in milliseconds of `performance.now()`. */
  idleSince = 0;
  /** Time that the connection may stay idle, in milliseconds. */
  idleMs = Infinity;

  constructor(socket: Socket) {
    this.socket = socket;
  }

  /**
   * Starts a read behind the unused bytes; its result is for `filled`. Two steps save a promise between reader and socket.
   * @throws {MalformedResponse} where the buffer has its largest length; the socket's errors
   */
  fill(): Promise<number | null> {
    const readAhead = this.#readAhead;
    if (readAhead !== undefined) {
      this.#readAhead = undefined;
      this.start = this.end = 0;
      return readAhead;
    }
    if (this.start < this.end) this.#makeRoom();
    else {
      if (this.end === this.buffer.length && this.end < READ_BYTES) this.buffer = new Uint8Array(READ_BYTES);
      this.start = this.end = 0;
    }
    return this.socket.read(this.end === 0 ? this.buffer : this.buffer.subarray(this.end));
  }

  /** Takes the result of `fill`. Returns false at the end of the connection. */
  filled(size: number | null): boolean {
    if (size === null) return false;
    this.end += size;
    this.received = true;
    return true;
  }

  /** Reads into the caller's bytes; the buffer must be empty. Returns the count, or `null` at the end. */
  readInto(bytes: Uint8Array): Promise<number | null> {
    return this.socket.read(bytes);
  }

  /** Writes everything from `start` on. @throws the socket's error; then not all of it was written */
  async write(bytes: Uint8Array, start = 0): Promise<void> {
    for (let written = start; written < bytes.length;) written += await this.socket.write(bytes.subarray(written));
  }

  /** Makes it idle. `onEnd` is called where the peer closes it or sends anything before the socket is in use again. */
  sleep(onEnd: (connection: Http1Connection) => void): void {
    this.#onEnd = onEnd;
    this.received = false;
    this.start = this.end = 0;
    this.#readAhead = this.socket.read(this.buffer);
    // Idle connections must not keep the process alive.
    this.socket.unref();
    this.#readAhead.then(this.#stirred, this.#stirred);
  }

  /** Closes the socket at once; pending reads and writes fail. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    try {
      this.socket.close();
    } catch {
      // The runtime closed it already.
    }
  }

  /** Moves unused bytes to the start of the buffer, and doubles a full buffer. */
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
