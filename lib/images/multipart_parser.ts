/**
 * Incremental multipart parser: chunks may be cut anywhere, and each byte is read once. It buffers only the header lines of
 * one part. Lines end in CRLF, never in LF alone.
 */
import { GatewayError } from "../errors.ts";
import { type PartHead, readPartHead } from "./part_head.ts";

/** Receives the parts of a form in order. An error that it throws ends the parsing. */
export interface PartSink {
  begin(head: PartHead): void;
  /** Bytes of the part, in order. The caller reuses the buffer, so copy them to keep them. */
  data(bytes: Uint8Array): void;
  end(): void;
}

/** Most bytes of one part's header lines. */
const HEAD_BYTES = 4096;

/** Most bytes before the first boundary, after the last, and in the rest of a boundary's line. */
const AROUND_BYTES = 4096;

const CR = 13;
const LF = 10;

type Step = "before" | "line" | "head" | "data" | "after";

/** Parses one form. */
export class MultipartParser {
  readonly #maxParts: number;
  readonly #sink: PartSink;
  readonly #delimiter: Uint8Array;
  readonly #head = new Uint8Array(HEAD_BYTES);
  #step: Step = "before";
  #parts = 0;
  /** Bytes of the current step. */
  #count = 0;
  /** Rest of the boundary's line. */
  #line = "";
  /** Number of delimiter bytes that the last bytes match. At the start of a step its CRLF counts as read. */
  #matched = 2;
  /** Number of the matched bytes that were not in the data of this step. */
  #borrowed = 2;

  constructor(boundary: string, { maxParts, sink }: { maxParts: number; sink: PartSink }) {
    this.#maxParts = maxParts;
    this.#sink = sink;
    this.#delimiter = new TextEncoder().encode(`\r\n--${boundary}`);
  }

  /** Parses the next bytes. @throws {GatewayError} `invalid` */
  push(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) {
      if (this.#step === "before" || this.#step === "data") at = this.#readData(bytes, at);
      else if (this.#step === "line") this.#readLine(bytes[at++] ?? 0);
      else if (this.#step === "head") this.#readHead(bytes[at++] ?? 0);
      else if ((this.#count += bytes.length - at) > AROUND_BYTES) throw invalid("too much follows its last boundary");
      else return;
    }
  }

  /** Ends the input. @throws {GatewayError} `invalid` if the form is incomplete */
  end(): void {
    if (this.#step === "after") return;
    throw invalid(this.#step === "before" ? "it has no boundary" : "it ends before its last boundary");
  }

  #enter(next: Step): void {
    this.#step = next;
    this.#count = 0;
    this.#line = "";
    this.#matched = 2;
    this.#borrowed = 2;
  }

  #give(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    if (this.#step === "data") this.#sink.data(bytes);
    else if ((this.#count += bytes.length) > AROUND_BYTES) throw invalid("it does not begin with its boundary");
  }

  /**
   * Searches for the delimiter and emits the bytes before it. The delimiter has its only CR first, so a failed match cannot
   * contain the start of another and the search never goes back.
   * @returns the offset behind the delimiter, or the length of `bytes`
   */
  #search(bytes: Uint8Array, from: number): number {
    const { length } = this.#delimiter;
    /** Bytes of the match in earlier chunks; -1 once they are known to be data or delimiter. */
    let carried = this.#matched;
    let match = this.#matched;
    for (let at = from; at < bytes.length; at++) {
      const byte = bytes[at];
      if (byte === this.#delimiter[match]) {
        if (++match < length) continue;
        const end = at + 1 - length;
        if (end > from) this.#give(bytes.subarray(from, end));
        this.#matched = match;
        return at + 1;
      }
      if (carried >= 0) {
        if (carried > this.#borrowed) this.#give(this.#delimiter.subarray(this.#borrowed, carried));
        carried = -1;
        this.#borrowed = 0;
      }
      match = byte === CR ? 1 : 0;
    }
    this.#matched = match;
    const end = bytes.length - match;
    if (end > from) this.#give(bytes.subarray(from, end));
    return bytes.length;
  }

  #readData(bytes: Uint8Array, from: number): number {
    const at = this.#search(bytes, from);
    if (this.#matched < this.#delimiter.length) return at;
    if (this.#step === "data") this.#sink.end();
    this.#enter("line");
    return at;
  }

  /** Reads the rest of a boundary line: two dashes after the last boundary, else optional padding and CRLF. */
  #readLine(byte: number): void {
    this.#line += String.fromCharCode(byte);
    if (this.#line === "--") return this.#enter("after");
    if (/^[ \t]*\r\n$/.test(this.#line)) {
      if (++this.#parts > this.#maxParts) throw invalid(`it has more than ${this.#maxParts} parts`);
      return this.#enter("head");
    }
    if (!/^(?:-|[ \t]{0,64}\r?)$/.test(this.#line)) throw invalid("a boundary is not followed by CRLF or --");
  }

  #readHead(byte: number): void {
    if (this.#count === HEAD_BYTES) throw invalid(`the head of a part has more than ${HEAD_BYTES} bytes`);
    const afterCr = this.#count > 0 && this.#head[this.#count - 1] === CR;
    if (afterCr !== (byte === LF) || (byte < 32 && byte !== CR && byte !== LF && byte !== 9)) {
      throw invalid("the head of a part has a control character, or a line that does not end in CRLF");
    }
    this.#head[this.#count++] = byte;
    const emptyLine = byte === LF && (this.#count === 2 || this.#head[this.#count - 3] === LF);
    if (!emptyLine) return;
    const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(
      this.#head.subarray(0, Math.max(0, this.#count - 4)),
    );
    this.#sink.begin(readPartHead(text));
    this.#enter("data");
  }
}

function invalid(why: string): GatewayError {
  return new GatewayError("invalid", `Cannot read the form: ${why}`);
}
