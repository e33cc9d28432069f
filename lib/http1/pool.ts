/** The connections to one host: those that lie idle, and new ones. */
import { Http1Connection } from "./connection.ts";
import { type AddressPolicy, Dialer, type HostAddress } from "./dialer.ts";

/** How many connections lie idle, and for how long. */
export interface PoolOptions {
  /** Most of them. With 0, each request makes its own. */
  idleConnections: number;
  /** In milliseconds; absent: what usual hosts can bear. */
  idleMs?: number | undefined;
  addresses: AddressPolicy;
}

/**
 * How long an idle connection is kept whose host does not say, in milliseconds. Hosts behind plain HTTP are near and often
 * servers as they come: uvicorn and Node close after 5 s, and another connection costs them nothing. Those behind TLS have
 * proxies before them, which keep theirs for 60 s (load balancers of clouds), 75 s (nginx) or longer, and another handshake
 * takes three ways there and back. A host that closes sooner is noticed, but for a request that leaves at that very moment.
 */
const PLAIN_IDLE_MS = 4_000;
const TLS_IDLE_MS = 50_000;

/** Time before the end that a peer announces within which a connection is not used any more, in milliseconds. */
const EARLY_MS = 1_000;

/** The connections to one host. The one that was used last is used first, so that the others grow old. */
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

  /** Whether connections are used more than once. */
  get keeps(): boolean {
    return this.#options.idleConnections > 0 && !this.#closed;
  }

  /** An idle connection, if there is one. Those that their peers have ended are not here any more. */
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

  /** A new connection. @throws as `Dialler.dial` */
  async open(signal: AbortSignal): Promise<Http1Connection> {
    return new Http1Connection(await this.#dialer.dial(signal));
  }

  /** Keeps a connection whose answer was read to its end. `keepsMs`: how long the peer says that it keeps it. */
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
