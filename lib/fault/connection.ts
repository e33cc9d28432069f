/**
 * One connection of the fault server. Requests are read and answers written as raw bytes, so that an answer can break
 * any rule.
 */
import { abortable, delay } from "../abort.ts";

/** Largest request that is read, in bytes. */
const MAX_REQUEST_BYTES = 256 * 1024 ** 2;

/** Bytes per read of a head: few, so that the last byte of the body stays unread for a reset. */
const HEAD_READ_BYTES = 16;

/** A request as received. */
export interface RawRequest {
  method: string;
  /** Path without the query. */
  path: string;
  /** Values by lower-case name. */
  headers: ReadonlyMap<string, string>;
  body: string;
}

/** The writing side of a connection. */
export interface FaultConnection {
  /** Aborts when the peer closes the connection or the server stops. */
  readonly signal: AbortSignal;
  /** Writes everything, as fast as the peer reads. @throws if the peer closed the connection */
  send(text: string | Uint8Array): Promise<void>;
  /** Waits for a time in milliseconds; without one, forever. @throws as soon as the peer closes the connection */
  wait(ms?: number): Promise<void>;
}

/**
 * Reads the requests of a connection. The last byte of a body may be left unread: the kernel resets a connection that
 * is closed with unread bytes.
 */
export class RequestReader {
  readonly #connection: Deno.TcpConn;
  /** Bytes received but not yet used. */
  #bytes = new Uint8Array(0);
  /** The read in progress. */
  #filling: Promise<boolean> | undefined;

  constructor(connection: Deno.TcpConn) {
    this.#connection = connection;
  }

  /**
   * Reads the next request, without the last byte of a body of known length (`isWhole` is false then). Returns
   * `undefined` if the connection ends before a whole request, or the request is too large.
   */
  async request(): Promise<{ request: RawRequest; isWhole: boolean } | undefined> {
    const head = await this.#readUntil("\r\n\r\n");
    if (head === undefined) return undefined;
    const [requestLine = "", ...lines] = head.split("\r\n");
    const [method = "", target = ""] = requestLine.split(" ");
    const headers = new Map(lines.map((line): [string, string] => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }));
    const request = { method, path: target.split("?")[0] ?? "", headers };
    if (headers.get("transfer-encoding") === "chunked") {
      const body = await this.#readChunks();
      return body === undefined ? undefined : { request: { ...request, body }, isWhole: true };
    }
    const length = Number(headers.get("content-length") ?? 0);
    if (length === 0) return { request: { ...request, body: "" }, isWhole: true };
    const body = await this.#readBytes(length - 1);
    // The unread byte is the closing brace of a JSON body.
    return body === undefined
      ? undefined
      : { request: { ...request, body: `${new TextDecoder().decode(body)}}` }, isWhole: false };
  }

  /** Reads the byte that `request` left unread. */
  async skipBody(): Promise<void> {
    await this.#readBytes(1);
  }

  /** Waits for the peer: resolves with true when it closes the connection, with false when its next request begins. */
  async whenClosed(): Promise<boolean> {
    return this.#bytes.length === 0 && !await this.#fill(1);
  }

  /** Receives more bytes, or waits for the read that `whenClosed` has begun. Returns false at the end of the connection. */
  #fill(maxBytes: number): Promise<boolean> {
    return this.#filling ??= this.#read(maxBytes).finally(() => this.#filling = undefined);
  }

  async #read(maxBytes: number): Promise<boolean> {
    const buffer = new Uint8Array(Math.min(65_536, maxBytes));
    const size = await this.#connection.read(buffer).catch(() => null);
    if (size === null) return false;
    const joined = new Uint8Array(this.#bytes.length + size);
    joined.set(this.#bytes);
    joined.set(buffer.subarray(0, size), this.#bytes.length);
    this.#bytes = joined;
    return true;
  }

  /** Reads up to and including a delimiter and returns the text before it. */
  async #readUntil(delimiter: string): Promise<string | undefined> {
    for (;;) {
      const end = decode(this.#bytes).indexOf(delimiter);
      if (end >= 0) {
        const text = decode(this.#bytes.subarray(0, end));
        this.#bytes = this.#bytes.slice(end + delimiter.length);
        return text;
      }
      if (this.#bytes.length > MAX_REQUEST_BYTES || !await this.#fill(HEAD_READ_BYTES)) return undefined;
    }
  }

  async #readBytes(count: number): Promise<Uint8Array | undefined> {
    if (count > MAX_REQUEST_BYTES) return undefined;
    while (this.#bytes.length < count) {
      if (!await this.#fill(count - this.#bytes.length)) return undefined;
    }
    const bytes = this.#bytes.slice(0, count);
    this.#bytes = this.#bytes.slice(count);
    return bytes;
  }

  /** Reads a body in chunked transfer encoding. */
  async #readChunks(): Promise<string | undefined> {
    const parts: string[] = [];
    for (;;) {
      const line = await this.#readUntil("\r\n");
      if (line === undefined) return undefined;
      const size = parseInt(line, 16);
      const bytes = await this.#readBytes(size + 2);
      if (bytes === undefined) return undefined;
      if (!(size > 0)) return parts.join("");
      parts.push(decode(bytes.subarray(0, size)));
    }
  }
}

/** Wraps a TCP connection for writing; `signal` says that the peer has gone or the server stops. */
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
    wait: (ms) => ms === undefined ? abortable(Promise.withResolvers<void>().promise, signal) : delay(ms, signal),
  };
}

/** Decodes bytes as Latin-1, so that text offsets equal byte offsets. */
function decode(bytes: Uint8Array): string {
  return new TextDecoder("latin1").decode(bytes);
}
