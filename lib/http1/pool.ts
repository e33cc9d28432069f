/** Connections to one host: idle ones and new ones. */
import { Http1Connection } from "./connection.ts";
import { type AddressPolicy, Dialer, type HostAddress } from "./dialer.ts";

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
  #closed = false;

  constructor(
    address: HostAddress,
    { idleConnections, idleMs = address.tls ? TLS_IDLE_MS : PLAIN_IDLE_MS, addresses }: PoolOptions,
  ) {
    this.#options = { idleConnections, idleMs };
    this.#dialer = new Dialer(address, addresses);
  }

  /** True where connections are reused. */
  get keeps(): boolean {
    return this.#options.idleConnections > 0 && !this.#closed;
  }

  /** An idle connection, if there is one. Connections closed by their peers were removed before. */
  take(now = performance.now()): Http1Connection | undefined {
    for (let connection = this.#idle.pop(); connection !== undefined; connection = this.#idle.pop()) {
      if (!isOld(connection, now)) {
        connection.wake();
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

  /** Keeps a connection whose response was read completely. `keepsMs` is the peer's keep-alive timeout. */
  put(connection: Http1Connection, keepsMs = Infinity): void {
    const idleMs = Math.min(this.#options.idleMs, keepsMs - EARLY_MS);
    if (!this.keeps || idleMs <= 0) return connection.close();
    connection.idleSince = performance.now();
    connection.idleMs = idleMs;
    this.#idle.push(connection);
    connection.sleep(this.#ended);
    if (this.#idle.length > this.#options.idleConnections) this.#idle.shift()?.close();
    if (this.#timer === undefined) this.#arm();
  }

  close(): void {
    this.#closed = true;
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
