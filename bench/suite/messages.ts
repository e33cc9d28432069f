/**
 * Reads and writes HTTP/1.1 messages over plain sockets with as little work as possible, one message after the other.
 */

/** A received message. */
export interface Message {
  head: string;
  /** Time at which the first byte of its body arrived, by `performance.now()`; without a body, that of its head. */
  firstMs: number;
  /** Bytes of its body as they were sent, chunk by chunk. */
  bytes: number;
  /** Its body as it was sent, if the caller asked to keep it. */
  text: string;
}

const BUFFER_BYTES = 256 * 1024;
/** Longest head, in bytes. */
const HEAD_BYTES = 8 * 1024;
/** End of a chunked body: `0\r\n\r\n`. */
const LAST_CHUNK = [48, 13, 10, 13, 10];

const decoder = new TextDecoder();
const encoder = new TextEncoder();

/** Reads messages from a socket on which no request is sent before the previous answer. */
export class MessageReader {
  readonly #socket: Deno.TcpConn;
  readonly #buffer: Uint8Array<ArrayBuffer>;

  /** Creates a reader. `bytes`: size of its buffer. */
  constructor(socket: Deno.TcpConn, bytes: number = BUFFER_BYTES) {
    this.#socket = socket;
    this.#buffer = new Uint8Array(bytes);
  }

  /**
   * The next message, or the beginning of one: `first` waits only for the first bytes of the body. Undefined at the end.
   * @throws {Error} if the connection ends within a message, or a message is none
   */
  async next({ keep = false, first = false }: { keep?: boolean; first?: boolean } = {}): Promise<Message | undefined> {
    const buffer = this.#buffer;
    let filled = 0;
    let head = "";
    let end = -1;
    while (end === -1) {
      const read = await this.#socket.read(buffer.subarray(filled));
      if (read === null && filled === 0) return undefined;
      filled += read ?? failed("the connection ended within a head");
      head = decoder.decode(buffer.subarray(0, Math.min(filled, HEAD_BYTES)));
      end = head.indexOf("\r\n\r\n");
      if (end === -1 && filled >= HEAD_BYTES) failed("the head is too long");
    }
    head = head.slice(0, end + 2);
    const begin = end + 4;
    const message: Message = { head, firstMs: performance.now(), bytes: filled - begin, text: "" };
    // Heads are ASCII here, so their characters are bytes.
    let from = begin;
    const isOver = this.#endOf(head);
    const bodyDecoder = keep ? new TextDecoder() : undefined;
    if (keep) message.text = bodyDecoder?.decode(buffer.subarray(begin, filled), { stream: true }) ?? "";
    while (first ? message.bytes === 0 : !isOver(message.bytes, filled)) {
      // The last bytes are kept, because the end may be split over two reads.
      const kept = Math.min(LAST_CHUNK.length, filled - from);
      buffer.copyWithin(0, filled - kept, filled);
      const read = await this.#socket.read(buffer.subarray(kept)) ?? failed("the connection ended within a body");
      if (message.bytes === 0) message.firstMs = performance.now();
      message.bytes += read;
      from = 0;
      filled = kept + read;
      if (keep) message.text += bodyDecoder?.decode(buffer.subarray(kept, filled), { stream: true }) ?? "";
    }
    return message;
  }

  #endOf(head: string): (bytes: number, filled: number) => boolean {
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
    if (length !== undefined) return (bytes) => bytes >= Number(length);
    if (!/\r\ntransfer-encoding: *chunked/i.test(head)) return () => true;
    const { length: size } = LAST_CHUNK;
    return (bytes, filled) =>
      bytes >= size && LAST_CHUNK.every((byte, index) => this.#buffer[filled - size + index] === byte);
  }
}

/** A connection for one request after another. */
export interface Connection {
  socket: Deno.TcpConn;
  reader: MessageReader;
}

/** Opens a connection to this machine. */
export async function connect(port: number, bufferBytes: number): Promise<Connection> {
  const socket = await Deno.connect({ hostname: "127.0.0.1", port });
  socket.setNoDelay(true);
  return { socket, reader: new MessageReader(socket, bufferBytes) };
}

/** Returns a whole request as bytes. */
export function requestBytes(
  { method = "POST", path, headers, body }: {
    method?: string;
    path: string;
    headers: Readonly<Record<string, string>>;
    body: string;
  },
): Uint8Array<ArrayBuffer> {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`).join("");
  const length = encoder.encode(body).length;
  return encoder.encode(
    `${method} ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n${lines}content-length: ${length}\r\n\r\n${body}`,
  );
}

/** Sends all of it. */
export async function send(socket: Deno.TcpConn, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await socket.write(at === 0 ? bytes : bytes.subarray(at));
}

function failed(what: string): never {
  throw new Error(`Cannot read a message: ${what}`);
}
