/** The body of a response, taken out of a connection's buffer as it arrives. */
import { ConnectionEnded } from "./errors.ts";
import { ChunkedDecoder } from "./chunked.ts";
import type { BodyFraming } from "./framing.ts";

/** Bytes read; those from `start` to `end` are unused. */
export interface ReceiveBuffer {
  buffer: Uint8Array;
  start: number;
  end: number;
}

/** Reads one body. */
export interface BodyReader {
  /** True at the end of the body. */
  readonly done: boolean;
  /** Bytes still to come; `undefined` where unknown. */
  readonly left: number | undefined;
  /** The data that has arrived, as a view of the buffer; `undefined` where there is none. @throws {MalformedResponse} */
  take(inbox: ReceiveBuffer): Uint8Array | undefined;
  /** Bytes were read without `take`, in a body of known length. */
  skip(bytes: number): void;
  /** Reports the end of the connection. @throws {ConnectionEnded} if the body is incomplete */
  end(): void;
}

/** Starts reading a body. */
export function createBody(framing: BodyFraming): BodyReader {
  switch (framing.kind) {
    case "none":
      return new LengthBody(0);
    case "length":
      return new LengthBody(framing.bytes);
    case "chunked":
      return new ChunkedBody();
    case "close":
      return new CloseBody();
  }
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

class ChunkedBody implements BodyReader {
  readonly #decoder = new ChunkedDecoder();
  readonly left = undefined;

  get done(): boolean {
    return this.#decoder.done;
  }

  take(inbox: ReceiveBuffer): Uint8Array | undefined {
    const decoder = this.#decoder;
    if (decoder.done || inbox.start === inbox.end) return undefined;
    decoder.decode(inbox.buffer, { from: inbox.start, to: inbox.end });
    inbox.start = decoder.consumed;
    return decoder.end > decoder.start ? inbox.buffer.subarray(decoder.start, decoder.end) : undefined;
  }

  skip(): void {}

  end(): void {
    if (!this.done) throw new ConnectionEnded("the last chunk");
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
