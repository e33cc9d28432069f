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

/** Parses one form. */
export interface MultipartParser {
  /** Parses the next bytes. @throws {GatewayError} `invalid` */
  push(bytes: Uint8Array): void;
  /** Ends the input. @throws {GatewayError} `invalid` if the form is incomplete */
  end(): void;
}

/** Most bytes of one part's header lines. */
const HEAD_BYTES = 4096;

/** Most bytes before the first boundary, after the last, and in the rest of a boundary's line. */
const AROUND_BYTES = 4096;

const CR = 13;
const LF = 10;

type Step = "before" | "line" | "head" | "data" | "after";

/** Creates a parser. `maxParts` limits the number of parts. */
export function createMultipartParser(
  boundary: string,
  { maxParts, sink }: { maxParts: number; sink: PartSink },
): MultipartParser {
  const delimiter = new TextEncoder().encode(`\r\n--${boundary}`);
  const head = new Uint8Array(HEAD_BYTES);
  let step: Step = "before";
  let parts = 0;
  /** Bytes of this step so far, where it counts them. */
  let count = 0;
  /** Rest of the boundary's line. */
  let line = "";
  /** How much of the delimiter the last bytes match. At the start of a step its CRLF is taken as read. */
  let matched = 2;
  /** How much of that match was never in the data of this step. */
  let borrowed = 2;

  function enter(next: Step): void {
    step = next;
    count = 0;
    line = "";
    matched = 2;
    borrowed = 2;
  }

  function give(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    if (step === "data") sink.data(bytes);
    else if ((count += bytes.length) > AROUND_BYTES) throw invalid("it does not begin with its boundary");
  }

  /**
   * Searches for the delimiter and emits the bytes before it. The delimiter has its only CR first, so a failed match cannot
   * contain the start of another and the search never goes back.
   * @returns the offset behind the delimiter, or the length of `bytes`
   */
  function search(bytes: Uint8Array, from: number): number {
    const { length } = delimiter;
    /** Bytes of the match in earlier chunks; -1 once they are known to be data or delimiter. */
    let carried = matched;
    let match = matched;
    for (let at = from; at < bytes.length; at++) {
      const byte = bytes[at];
      if (byte === delimiter[match]) {
        if (++match < length) continue;
        const end = at + 1 - length;
        if (end > from) give(bytes.subarray(from, end));
        matched = match;
        return at + 1;
      }
      if (carried >= 0) {
        if (carried > borrowed) give(delimiter.subarray(borrowed, carried));
        carried = -1;
        borrowed = 0;
      }
      match = byte === CR ? 1 : 0;
    }
    matched = match;
    const end = bytes.length - match;
    if (end > from) give(bytes.subarray(from, end));
    return bytes.length;
  }

  function readData(bytes: Uint8Array, from: number): number {
    const at = search(bytes, from);
    if (matched < delimiter.length) return at;
    if (step === "data") sink.end();
    enter("line");
    return at;
  }

  /** Reads the rest of a boundary line: two dashes after the last boundary, else optional padding and CRLF. */
  function readLine(byte: number): void {
    line += String.fromCharCode(byte);
    if (line === "--") return enter("after");
    if (/^[ \t]*\r\n$/.test(line)) {
      if (++parts > maxParts) throw invalid(`it has more than ${maxParts} parts`);
      return enter("head");
    }
    if (!/^(?:-|[ \t]{0,64}\r?)$/.test(line)) throw invalid("a boundary is not followed by CRLF or --");
  }

  function readHead(byte: number): void {
    if (count === HEAD_BYTES) throw invalid(`the head of a part has more than ${HEAD_BYTES} bytes`);
    const afterCr = count > 0 && head[count - 1] === CR;
    if (afterCr !== (byte === LF) || (byte < 32 && byte !== CR && byte !== LF && byte !== 9)) {
      throw invalid("the head of a part has a control character, or a line that does not end in CRLF");
    }
    head[count++] = byte;
    const emptyLine = byte === LF && (count === 2 || head[count - 3] === LF);
    if (!emptyLine) return;
    const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(head.subarray(0, Math.max(0, count - 4)));
    sink.begin(readPartHead(text));
    enter("data");
  }

  return {
    push(bytes) {
      for (let at = 0; at < bytes.length;) {
        if (step === "before" || step === "data") at = readData(bytes, at);
        else if (step === "line") readLine(bytes[at++] ?? 0);
        else if (step === "head") readHead(bytes[at++] ?? 0);
        else if ((count += bytes.length - at) > AROUND_BYTES) throw invalid("too much follows its last boundary");
        else return;
      }
    },
    end() {
      if (step === "after") return;
      throw invalid(step === "before" ? "it has no boundary" : "it ends before its last boundary");
    },
  };
}

function invalid(why: string): GatewayError {
  return new GatewayError("invalid", `Cannot read the form: ${why}`);
}
