/** Reads the body of a response from a connection's buffer, by its length, in chunks, or until the connection ends. */
import { ConnectionEnded, MalformedResponse } from "./errors.ts";
import type { BodyFraming } from "./response_head.ts";

/** Received bytes. Those from `start` to `end` are not yet consumed. */
export interface ReceiveBuffer {
  buffer: Uint8Array;
  start: number;
  end: number;
}

/** Reads one body. */
export interface BodyReader {
  /** True at the end of the body. */
  readonly done: boolean;
  /** Bytes that are still missing; `undefined` if unknown. */
  readonly left: number | undefined;
  /**
   * Consumes the received data, and returns it as a view of the buffer; `undefined` without data.
   * @throws {MalformedResponse}
   */
  take(inbox: ReceiveBuffer): Uint8Array | undefined;
  /** Reports bytes that were read without `take`, in a body of known length. */
  skip(bytes: number): void;
  /** Reports the end of the connection. @throws {ConnectionEnded} if the body is incomplete */
  end(): void;
}

/** Creates the reader for a body. */
export function createBody(framing: BodyFraming): BodyReader {
  if (typeof framing === "number") return new LengthBody(framing);
  return framing === "chunked" ? new ChunkedBody() : new CloseBody();
}

class LengthBody implements BodyReader {
  left: number;

  constructor(bytes: number) {
    this.left = bytes;
  }

  get done(): boolean {
    return this.left === 0;
  }

  take(inbox: ReceiveBuffer): Uint8Array | undefined {
    const { buffer, start, end } = inbox;
    const size = Math.min(this.left, end - start);
    if (size === 0) return undefined;
    this.left -= size;
    inbox.start += size;
    return buffer.subarray(start, start + size);
  }

  skip(bytes: number): void {
    this.left -= bytes;
  }

  end(): void {
    if (this.left > 0) throw new ConnectionEnded("the body");
  }
}

class CloseBody implements BodyReader {
  done = false;
  readonly left = undefined;

  take(inbox: ReceiveBuffer): Uint8Array | undefined {
    const { buffer, start, end } = inbox;
    inbox.start = end;
    return end > start ? buffer.subarray(start, end) : undefined;
  }

  skip(): void {}

  end(): void {
    this.done = true;
  }
}

/** Longest extension after a chunk's size, in bytes. Extensions are ignored. */
const MAX_EXTENSION_BYTES = 1024;
/** Maximum number of bytes of all trailers. */
const MAX_TRAILER_BYTES = 16 * 1024;
/** Maximum number of hexadecimal digits of a chunk's size. Any such number is exact in a double. */
const MAX_SIZE_DIGITS = 13;

const LF = 10;
const CR = 13;
const TAB = 9;
const SEMICOLON = 59;

const TRAILER = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*$/;

type State = "size" | "extension" | "size end" | "data" | "data end" | "data LF" | "trailer" | "trailer LF" | "done";

/** A chunked body, whatever pieces it arrives in. Trailers are checked and discarded. */
class ChunkedBody implements BodyReader {
  #state: State = "size";
  /** Digits of the size so far. */
  #digits = 0;
  /** Bytes of the extension so far, or of all trailers. */
  #lineBytes = 0;
  /** Missing bytes of the current chunk; while its size is read, the size so far. */
  #left = 0;
  #trailer = "";
  readonly left = undefined;

  get done(): boolean {
    return this.#state === "done";
  }

  /** Decodes in place: the data of several chunks is moved together, over the encoded bytes. */
  take(inbox: ReceiveBuffer): Uint8Array | undefined {
    const { buffer, end } = inbox;
    let at = inbox.start;
    let dataStart = at;
    let dataEnd = at;
    while (at < end && this.#state !== "done") {
      if (this.#state !== "data") {
        this.#readByte(buffer[at] ?? 0);
        at++;
        continue;
      }
      const size = Math.min(this.#left, end - at);
      // The first data need not be moved.
      if (dataEnd === dataStart) dataStart = dataEnd = at;
      else buffer.copyWithin(dataEnd, at, at + size);
      dataEnd += size;
      at += size;
      this.#left -= size;
      if (this.#left === 0) this.#state = "data end";
    }
    inbox.start = at;
    return dataEnd > dataStart ? buffer.subarray(dataStart, dataEnd) : undefined;
  }

  skip(): void {}

  end(): void {
    if (!this.done) throw new ConnectionEnded("the last chunk");
  }

  #readByte(byte: number): void {
    switch (this.#state) {
      case "size":
        return this.#readSize(byte);
      case "extension":
        if (++this.#lineBytes > MAX_EXTENSION_BYTES) {
          throw new MalformedResponse("The line of a chunk's size is too long");
        }
        if (byte === CR) this.#state = "size end";
        else if ((byte < 32 && byte !== TAB) || byte === 127) {
          throw new MalformedResponse("A chunk's extension is malformed");
        }
        return;
      case "size end":
        expect(byte, LF);
        this.#digits = 0;
        this.#lineBytes = 0;
        this.#state = this.#left === 0 ? "trailer" : "data";
        return;
      case "data end":
        expect(byte, CR);
        this.#state = "data LF";
        return;
      case "data LF":
        expect(byte, LF);
        this.#state = "size";
        return;
      case "trailer":
        if (++this.#lineBytes > MAX_TRAILER_BYTES) throw new MalformedResponse("The trailers are too long");
        if (byte === LF) throw new MalformedResponse("A trailer ends in a bare LF");
        if (byte === CR) this.#state = "trailer LF";
        else this.#trailer += String.fromCharCode(byte);
        return;
      case "trailer LF":
        expect(byte, LF);
        if (this.#trailer !== "" && !TRAILER.test(this.#trailer)) {
          throw new MalformedResponse("A trailer is not a header");
        }
        this.#state = this.#trailer === "" ? "done" : "trailer";
        this.#trailer = "";
    }
  }

  #readSize(byte: number): void {
    const digit = hexDigit(byte);
    if (digit >= 0) {
      if (++this.#digits > MAX_SIZE_DIGITS) throw new MalformedResponse("A chunk's size is too large");
      this.#left = this.#left * 16 + digit;
      return;
    }
    if (this.#digits === 0 || (byte !== CR && byte !== SEMICOLON)) {
      throw new MalformedResponse("A chunk's size is not a number");
    }
    this.#state = byte === CR ? "size end" : "extension";
  }
}

function expect(byte: number, wanted: number): void {
  if (byte !== wanted) throw new MalformedResponse("A chunk does not end where its size says");
}

/** Returns the value of a hexadecimal digit; -1 for another character. */
function hexDigit(byte: number): number {
  if (byte >= 48 && byte <= 57) return byte - 48;
  const lower = byte | 32;
  return lower >= 97 && lower <= 102 ? lower - 87 : -1;
}
