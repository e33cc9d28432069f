/**
 * An incremental multipart parser. Chunks may be cut anywhere, and each byte is read once. It buffers only the header
 * lines of one part. Lines must end with CRLF; LF alone is an error.
 */
import { GatewayError } from "../errors.ts";
import { type PartHead, readPartHead } from "./part_head.ts";

/** Receives the parts of a form in order. An error that it throws ends the parsing. */
export interface PartSink {
  begin(head: PartHead): void;
  /** Receives the next bytes of the part. They must be copied, because the caller reuses the buffer. */
  data(bytes: Uint8Array): void;
  end(): void;
}

/** Maximum number of bytes of one part's header lines. */
const MAX_HEAD_BYTES = 4096;

/** Maximum number of bytes before the first boundary, and after the last one. */
const MAX_OUTER_BYTES = 4096;

const CR = 13;
const LF = 10;

/**
 * The part of the form that is being read: bytes before the first boundary, the rest of a boundary's line, a
 * part, or bytes after the last.
 */
type Step = "before" | "line" | "head" | "data" | "after";

/** Parses one form. */
export class MultipartParser {
  readonly #maxParts: number;
  readonly #sink: PartSink;
  readonly #delimiter: Uint8Array;
  readonly #head = new Uint8Array(MAX_HEAD_BYTES);
  #step: Step = "before";
  #parts = 0;
  /** Bytes of the current step. */
  #count = 0;
  /** The rest of the boundary's line so far. */
  #line = "";
  /** Number of delimiter bytes that the last bytes match. At the start of a step, the CRLF counts as matched. */
  #matched = 2;
  /** Number of matched bytes that are not part of this step's data, because they belong to the line before. */
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
      else if ((this.#count += bytes.length - at) > MAX_OUTER_BYTES) {
        throw invalid("too much follows its last boundary");
      } else return;
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

  #emit(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    if (this.#step === "data") this.#sink.data(bytes);
    else if ((this.#count += bytes.length) > MAX_OUTER_BYTES) throw invalid("it does not begin with its boundary");
  }

  /**
   * Searches for the delimiter and emits the bytes before it. The only CR of the delimiter is its first byte, so a
   * failed match cannot contain the start of another match, and the search never goes back.
   * @returns the offset after the delimiter, or the length of `bytes`
   */
  #search(bytes: Uint8Array, from: number): number {
    const { length } = this.#delimiter;
    /** Matched bytes in earlier chunks; -1 once it is known whether they are data. */
    let carriedMatch = this.#matched;
    let match = this.#matched;
    for (let at = from; at < bytes.length; at++) {
      const byte = bytes[at];
      if (byte === this.#delimiter[match]) {
        if (++match < length) continue;
        const end = at + 1 - length;
        if (end > from) this.#emit(bytes.subarray(from, end));
        this.#matched = match;
        return at + 1;
      }
      if (carriedMatch >= 0) {
        if (carriedMatch > this.#borrowed) this.#emit(this.#delimiter.subarray(this.#borrowed, carriedMatch));
        carriedMatch = -1;
        this.#borrowed = 0;
      }
      match = byte === CR ? 1 : 0;
    }
    this.#matched = match;
    const end = bytes.length - match;
    if (end > from) this.#emit(bytes.subarray(from, end));
    return bytes.length;
  }

  #readData(bytes: Uint8Array, from: number): number {
    const at = this.#search(bytes, from);
    if (this.#matched < this.#delimiter.length) return at;
    if (this.#step === "data") this.#sink.end();
    this.#enter("line");
    return at;
  }

  /** Reads the rest of a boundary's line: two dashes after the last boundary, otherwise optional padding and CRLF. */
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
    if (this.#count === MAX_HEAD_BYTES) throw invalid(`the head of a part has more than ${MAX_HEAD_BYTES} bytes`);
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
