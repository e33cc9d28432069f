/** One connection: a socket, and the bytes that were read from it and not yet used. */
import { MalformedResponse } from "./errors.ts";
import { HEAD_BYTES } from "./response_head.ts";
import type { Socket } from "./dialer.ts";

/** Bytes that are read at once; the buffer grows only for a long head. */
const READ_BYTES = 16 * 1024;

/** A connection that carries one request after another. */
export class Http1Connection {
  readonly #socket: Socket;
  #closed = false;
  /** The read of an idle connection, which becomes the first one of the next answer. */
  #ahead: Promise<number | null> | undefined;
  #onEnd: ((connection: Http1Connection) => void) | undefined;
  /** That read has ended, before it was anybody's. */
  readonly #stirred = () => void (this.#ahead !== undefined && this.#onEnd?.(this));

  /** What was read: bytes from `start` to `end` have yet to be used. */
  buffer = new Uint8Array(READ_BYTES);
  start = 0;
  end = 0;
  /** Whether anything of the present answer has come. */
  received = false;
  /** When it was put aside, in milliseconds of `performance.now()`. */
  idleSince = 0;
  /** For how long it may lie idle, in milliseconds. */
  idleMs = Infinity;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /**
   * Begins to read what comes next, behind what is there; what it resolves with is for `filled`. In two steps, so that no
   * promise of our own stands between a reader and the socket.
   * @throws {MalformedResponse} where there is no room for more; and what the socket says
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

  /** So much has come. Returns false at the connection's end. */
  filled(size: number | null): boolean {
    if (size === null) return false;
    this.end += size;
    this.received = true;
    return true;
  }

  /** Reads into bytes of the caller's; nothing may be left in the buffer. Returns how many, or `null` at the end. */
  readInto(bytes: Uint8Array): Promise<number | null> {
    return this.#socket.read(bytes);
  }

  /** Begins to write. Resolves with how much has left: mostly all of it, so that no promise of our own stands between. */
  begin(bytes: Uint8Array): Promise<number> {
    return this.#socket.write(bytes);
  }

  /** Writes all of it, or all but what has left. @throws what the socket says; then not all of it has left */
  async write(bytes: Uint8Array, left = 0): Promise<void> {
    for (let written = left; written < bytes.length;) written += await this.#socket.write(bytes.subarray(written));
  }

  /** Puts it aside. `onEnd` is called where anything comes from the peer before it is woken: its end, or what nobody asked. */
  sleep(onEnd: (connection: Http1Connection) => void): void {
    this.#onEnd = onEnd;
    this.received = false;
    this.start = this.end = 0;
    this.#ahead = this.#socket.read(this.buffer);
    // An idle connection does not keep the process alive.
    this.#socket.unref();
    this.#ahead.then(this.#stirred, this.#stirred);
  }

  /** Takes it up again. */
  wake(): void {
    this.#socket.ref();
  }

  /** Frees the socket at once; what is being read or written fails. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    try {
      this.#socket.close();
    } catch {
      // The runtime has closed it already.
    }
  }

  /** Moves what is there to the buffer's begin, and doubles a buffer that is full. */
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
