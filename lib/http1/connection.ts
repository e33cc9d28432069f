/** One connection: a socket and the bytes read ahead from it. */
import { MalformedResponse } from "./errors.ts";
import { HEAD_BYTES } from "./response_head.ts";
import type { Socket } from "./dialer.ts";

/** Bytes of one read. The buffer grows for a long head only. */
const READ_BYTES = 16 * 1024;

/** A connection that carries one request after another. */
export class Http1Connection {
  readonly #socket: Socket;
  #closed = false;
  /** The pending read of an idle connection, which becomes the first read of the next response. */
  #ahead: Promise<number | null> | undefined;
  #onEnd: ((connection: Http1Connection) => void) | undefined;
  /** The pending read ended while the connection was idle. */
  readonly #stirred = () => void (this.#ahead !== undefined && this.#onEnd?.(this));

  /** Bytes read; those from `start` to `end` are unused. */
  buffer = new Uint8Array(READ_BYTES);
  start = 0;
  end = 0;
  /** True when a byte of the present response has arrived. */
  received = false;
  /** Since when it is idle, in milliseconds of `performance.now()`. */
  idleSince = 0;
  /** Time that the connection may stay idle, in milliseconds. */
  idleMs = Infinity;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /**
   * Starts a read behind the unused bytes; its result is for `filled`. Two steps save a promise between reader and socket.
   * @throws {MalformedResponse} where the buffer has its largest length; the socket's errors
   */
  fill(): Promise<number | null> {
    const ahead = this.#ahead;
    if (ahead !== undefined) {
      this.#ahead = undefined;
      this.start = this.end = 0;
      return ahead;
    }
    if (this.start === this.end) this.start = this.end = 0;
    else this.#makeRoom();
    return this.#socket.read(this.end === 0 ? this.buffer : this.buffer.subarray(this.end));
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
    return this.#socket.read(bytes);
  }

  /** One write. Resolves with the bytes written, mostly all of them, without a promise of our own in between. */
  begin(bytes: Uint8Array): Promise<number> {
    return this.#socket.write(bytes);
  }

  /** Writes everything from `left` on. @throws the socket's error; then not all of it was written */
  async write(bytes: Uint8Array, left = 0): Promise<void> {
    for (let written = left; written < bytes.length;) written += await this.#socket.write(bytes.subarray(written));
  }

  /** Makes it idle. `onEnd` is called where the peer closes it or sends anything before `wake`. */
  sleep(onEnd: (connection: Http1Connection) => void): void {
    this.#onEnd = onEnd;
    this.received = false;
    this.start = this.end = 0;
    this.#ahead = this.#socket.read(this.buffer);
    // Idle connections must not keep the process alive.
    this.#socket.unref();
    this.#ahead.then(this.#stirred, this.#stirred);
  }

  /** Makes it active again. */
  wake(): void {
    this.#socket.ref();
  }

  /** Closes the socket at once; pending reads and writes fail. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    try {
      this.#socket.close();
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
