/** One connection of the server that misbehaves: requests are read by hand, answers are written as bytes. */

/** Most bytes of a request. */
const REQUEST_BYTES = 256 * 1024 ** 2;

/**
 * Bytes read at a time until the head's end is there: few, so that the last byte of a body is still with the system, and
 * more than one, so that it does not take for ever.
 */
const HEAD_STEP = 16;

/** A request as it came. */
export interface RawRequest {
  method: string;
  /** Path without the query. */
  path: string;
  headers: ReadonlyMap<string, string>;
  body: string;
}

/** What is written to a connection, and the peer's patience. */
export interface Line {
  /** Aborted when the peer has gone, and when the server ends. */
  readonly signal: AbortSignal;
  /** Writes all of it, as fast as the peer takes it. @throws where the peer has gone */
  send(text: string | Uint8Array): Promise<void>;
  /** Lets time pass; without a time for ever. @throws where the peer has gone meanwhile */
  wait(ms?: number): Promise<void>;
}

/**
 * Bytes of a connection, read ahead. One byte of each request may be left unread: a connection that is closed with unread
 * bytes is reset by the system.
 */
export class Reader {
  readonly #connection: Deno.TcpConn;
  #bytes = new Uint8Array(0);
  #filling: Promise<boolean> | undefined;

  constructor(connection: Deno.TcpConn) {
    this.#connection = connection;
  }

  /** The next request, but for the last byte of its body where it tells its length; `undefined` where the peer has gone. */
  async request(): Promise<{ request: RawRequest; isWhole: boolean } | undefined> {
    const head = await this.#until("\r\n\r\n");
    if (head === undefined) return undefined;
    const [first = "", ...lines] = head.split("\r\n");
    const [method = "", target = ""] = first.split(" ");
    const headers = new Map(lines.map((line): [string, string] => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }));
    const request = { method, path: target.split("?")[0] ?? "", headers };
    if (headers.get("transfer-encoding") === "chunked") {
      const body = await this.#chunks();
      return body === undefined ? undefined : { request: { ...request, body }, isWhole: true };
    }
    const length = Number(headers.get("content-length") ?? 0);
    if (length === 0) return { request: { ...request, body: "" }, isWhole: true };
    const body = await this.#take(length - 1);
    // What is left is the brace that ends every JSON body.
    return body === undefined
      ? undefined
      : { request: { ...request, body: `${new TextDecoder().decode(body)}}` }, isWhole: false };
  }

  /** Reads the byte that was left. */
  async rest(): Promise<void> {
    await this.#take(1);
  }

  /** Resolves with true when the peer has gone, with false when it says more: that is the beginning of its next request. */
  async gone(): Promise<boolean> {
    return this.#bytes.length === 0 && !await this.#fill(1);
  }

  /** Reads a little more. Somebody who watches may be reading already. */
  #fill(most: number): Promise<boolean> {
    return this.#filling ??= this.#read(most).finally(() => this.#filling = undefined);
  }

  async #read(most: number): Promise<boolean> {
    const buffer = new Uint8Array(Math.min(65_536, most));
    const size = await this.#connection.read(buffer).catch(() => null);
    if (size === null) return false;
    const joined = new Uint8Array(this.#bytes.length + size);
    joined.set(this.#bytes);
    joined.set(buffer.subarray(0, size), this.#bytes.length);
    this.#bytes = joined;
    return true;
  }

  /** Text up to a mark, which is taken too. */
  async #until(mark: string): Promise<string | undefined> {
    for (;;) {
      const at = decode(this.#bytes).indexOf(mark);
      if (at >= 0) {
        const text = decode(this.#bytes.subarray(0, at));
        this.#bytes = this.#bytes.slice(at + mark.length);
        return text;
      }
      if (this.#bytes.length > REQUEST_BYTES || !await this.#fill(HEAD_STEP)) return undefined;
    }
  }

  async #take(count: number): Promise<Uint8Array | undefined> {
    if (count > REQUEST_BYTES) return undefined;
    while (this.#bytes.length < count) {
      if (!await this.#fill(count - this.#bytes.length)) return undefined;
    }
    const taken = this.#bytes.slice(0, count);
    this.#bytes = this.#bytes.slice(count);
    return taken;
  }

  async #chunks(): Promise<string | undefined> {
    const parts: string[] = [];
    for (;;) {
      const line = await this.#until("\r\n");
      if (line === undefined) return undefined;
      const size = parseInt(line, 16);
      const bytes = await this.#take(size + 2);
      if (bytes === undefined) return undefined;
      if (!(size > 0)) return parts.join("");
      parts.push(decode(bytes.subarray(0, size)));
    }
  }
}

/** A line over a connection. */
export function lineOver(connection: Deno.TcpConn, signal: AbortSignal): Line {
  return {
    signal,
    async send(text) {
      const bytes = typeof text === "string" ? new TextEncoder().encode(text) : text;
      for (let at = 0; at < bytes.length;) {
        signal.throwIfAborted();
        at += await connection.write(bytes.subarray(at));
      }
    },
    wait: (ms) =>
      new Promise((resolve, reject) => {
        const timer = ms === undefined ? undefined : setTimeout(() => end(resolve), ms);
        const leave = () => end(() => reject(signal.reason));
        const end = (then: () => void) => {
          clearTimeout(timer);
          signal.removeEventListener("abort", leave);
          then();
        };
        if (signal.aborted) leave();
        else signal.addEventListener("abort", leave);
      }),
  };
}

/** Bytes as characters of the same codes: offsets stay what they are. */
function decode(bytes: Uint8Array): string {
  return new TextDecoder("latin1").decode(bytes);
}
