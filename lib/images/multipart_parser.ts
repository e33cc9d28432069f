/**
 * A form as bytes becomes parts. A machine: bytes go in as they come, cut anywhere. Each byte is looked at once, whatever
 * it is, and nothing is kept but the header lines of one part. Lines end in CRLF, never in LF alone.
 */
import { GatewayError } from "../errors.ts";
import { type PartHead, readPartHead } from "./part_head.ts";

/** Gets the parts of a form, one after the other. Whatever it throws ends the parsing. */
export interface PartSink {
  begin(head: PartHead): void;
  /** Bytes of the part, in order. They are the caller's: copy what is to be kept. */
  data(bytes: Uint8Array): void;
  end(): void;
}

/** Parses one form. */
export interface MultipartParser {
  /** Takes the next bytes. @throws {GatewayError} `invalid` */
  push(bytes: Uint8Array): void;
  /** Says that there are no more. @throws {GatewayError} `invalid` where the form is not complete */
  end(): void;
}

/** Most bytes of one part's header lines. */
const HEAD_BYTES = 4096;

/** Most bytes before the first boundary, after the last, and in the rest of a boundary's line. */
const AROUND_BYTES = 4096;

const CR = 13;
const LF = 10;

type Step = "before" | "line" | "head" | "data" | "after";

/** Starts parsing. `maxParts` is how many parts there may be. */
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
   * Looks for the delimiter and gives away what comes before it. The delimiter has one CR, its first byte, so a match that
   * fails cannot have held the start of another: there is no going back.
   * @returns where the delimiter ends, or the length of `bytes`
   */
  function search(bytes: Uint8Array, from: number): number {
    const { length } = delimiter;
    /** Bytes of the match that came with earlier pieces; -1 once it is decided whether they are data. */
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

  /** What follows a boundary: two dashes after the last one, else the end of the line, maybe after some padding. */
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
