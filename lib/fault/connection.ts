/**
 * One connection of the fault server. Reads requests and writes answers as raw bytes, so that anything can be wrong.
 */

/** Most bytes of a request. */
const REQUEST_BYTES = 256 * 1024 ** 2;

/** Bytes per read of a head: few, so that the last byte of the body stays unread for a reset. */
const HEAD_STEP = 16;

/** A request as received. */
export interface RawRequest {
  method: string;
  /** Path without the query. */
  path: string;
  headers: ReadonlyMap<string, string>;
  body: string;
}

/** The writing side of a connection. */
export interface FaultConnection {
  /** Aborts when the peer closes the connection or the server stops. */
  readonly signal: AbortSignal;
  /** Writes everything, as fast as the peer reads. @throws if the peer closed the connection */
  send(text: string | Uint8Array): Promise<void>;
  /** Waits; without a time, until the peer closes the connection. @throws when it does */
  wait(ms?: number): Promise<void>;
}

/** Reads requests. One byte of each may be left unread: the kernel resets a connection that is closed with unread bytes. */
export class RequestReader {
  readonly #connection: Deno.TcpConn;
  #bytes = new Uint8Array(0);
  #filling: Promise<boolean> | undefined;

  constructor(connection: Deno.TcpConn) {
    this.#connection = connection;
  }

  /**
   * Reads the next request, without the last byte of a body of known length; `undefined` at the end of the connection.
   */
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
    // The unread byte is the closing brace of a JSON body.
    return body === undefined
      ? undefined
      : { request: { ...request, body: `${new TextDecoder().decode(body)}}` }, isWhole: false };
  }

  /** Reads the byte left unread. */
  async skipBody(): Promise<void> {
    await this.#take(1);
  }

  /** Resolves with true when the peer closes the connection, with false when its next request begins. */
  async whenClosed(): Promise<boolean> {
    return this.#bytes.length === 0 && !await this.#fill(1);
  }

  /** Reads more bytes. `whenClosed` may be reading already. */
  #fill(limit: number): Promise<boolean> {
    return this.#filling ??= this.#read(limit).finally(() => this.#filling = undefined);
  }

  async #read(limit: number): Promise<boolean> {
    const buffer = new Uint8Array(Math.min(65_536, limit));
    const size = await this.#connection.read(buffer).catch(() => null);
    if (size === null) return false;
    const joined = new Uint8Array(this.#bytes.length + size);
    joined.set(this.#bytes);
    joined.set(buffer.subarray(0, size), this.#bytes.length);
    this.#bytes = joined;
    return true;
  }

  /** Reads text up to and including a delimiter. */
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
    const bytes = this.#bytes.slice(0, count);
    this.#bytes = this.#bytes.slice(count);
    return bytes;
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

/** The writing side of a TCP connection. */
export function connectionOver(connection: Deno.TcpConn, signal: AbortSignal): FaultConnection {
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
        const end = (respond: () => void) => {
          clearTimeout(timer);
          signal.removeEventListener("abort", leave);
          respond();
        };
        if (signal.aborted) leave();
        else signal.addEventListener("abort", leave);
      }),
  };
}

/** Decodes bytes as Latin-1, so that text offsets equal byte offsets. */
function decode(bytes: Uint8Array): string {
  return new TextDecoder("latin1").decode(bytes);
}
