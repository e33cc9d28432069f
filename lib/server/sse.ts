/** Server-sent events as text: read from upstreams, written to clients. */
import type { Machine } from "../protocols/canonical/types.ts";
import { GatewayError } from "../errors.ts";
import type { Frame } from "../protocols/codec.ts";

/** Longest event that an upstream may send, in UTF-16 code units, which is its size in memory. */
const EVENT_LENGTH = 8 * 1024 * 1024;

/**
 * One event as it goes out: LF only, and a space after each colon, which some clients look for.
 * @throws {RangeError} where the name or the data has a line break, which would start a line of its own
 */
export function formatFrame({ event, data }: Frame): string {
  if (hasBreak(data)) throw new RangeError("Cannot write an event: its data has a line break");
  if (event === undefined) return "data: " + data + "\n\n";
  if (hasBreak(event)) throw new RangeError("Cannot write an event: its name has a line break");
  return "event: " + event + "\ndata: " + data + "\n\n";
}

/** Events as they go out together. @throws {RangeError} as `formatFrame` does */
export function formatFrames(frames: readonly Frame[]): string {
  let text = "";
  for (const frame of frames) text += formatFrame(frame);
  return text;
}

function hasBreak(text: string): boolean {
  return text.includes("\n") || text.includes("\r");
}

/**
 * Reads a stream of text as the WHATWG specification says, with one exception: an event that the end of the stream cuts
 * off is still given, as some upstreams forget the last blank line. Lines of one event's data are joined by LF.
 * `push` throws a {@linkcode GatewayError} (`upstream`) for an event that is longer than the limit.
 */
export class SseReader implements Machine<string, Frame> {
  readonly #limit: number;
  /** Pieces of a line whose end has not come: joined once, so that a long line costs no more than its length. */
  #pieces: string[] = [];
  #piecesLength = 0;
  #data: string | undefined;
  #event = "";
  #started = false;
  /** The last chunk ended in CR: an LF at the start of the next one belongs to it. */
  #afterReturn = false;

  constructor(limit: number = EVENT_LENGTH) {
    this.#limit = limit;
  }

  push(chunk: string): Frame[] {
    const out: Frame[] = [];
    let at = this.#afterReturn && chunk.startsWith("\n") ? 1 : 0;
    if (chunk !== "") this.#afterReturn = false;
    const hasReturn = chunk.includes("\r");
    while (at < chunk.length) {
      const end = hasReturn ? breakIndex(chunk, at) : chunk.indexOf("\n", at);
      if (end < 0) {
        this.#pieces.push(chunk.slice(at));
        this.#piecesLength += chunk.length - at;
        this.#checkLength(this.#piecesLength);
        break;
      }
      let line = chunk.slice(at, end);
      if (this.#pieces.length > 0) {
        line = this.#pieces.join("") + line;
        this.#pieces = [];
        this.#piecesLength = 0;
      }
      this.#takeLine(line, out);
      at = end + 1;
      if (chunk[end] === "\r") {
        if (at === chunk.length) this.#afterReturn = true;
        else if (chunk[at] === "\n") at++;
      }
    }
    return out;
  }

  end(): Frame[] {
    const out: Frame[] = [];
    if (this.#pieces.length > 0) this.#takeLine(this.#pieces.join(""), out);
    this.#pieces = [];
    this.#piecesLength = 0;
    this.#dispatch(out);
    return out;
  }

  /** Counts the kept text and the line that is added to it. */
  #checkLength(lineLength: number): void {
    if ((this.#data?.length ?? 0) + this.#event.length + lineLength > this.#limit) {
      throw new GatewayError(
        "upstream",
        `Cannot read the upstream's stream: an event is longer than ${this.#limit} characters`,
      );
    }
  }

  #takeLine(line: string, out: Frame[]): void {
    if (line === "" && this.#started) return this.#dispatch(out);
    if (!this.#started) {
      this.#started = true;
      if (line.startsWith("\ufeff")) line = line.slice(1);
      if (line === "") return this.#dispatch(out);
    }
    this.#checkLength(line.length);
    // Nearly all lines are one of these.
    if (line.startsWith("data: ") && this.#data === undefined) {
      this.#data = line.slice(6);
      return;
    }
    if (line.startsWith("event: ")) {
      this.#event = line.slice(7);
      return;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (field === "data") this.#data = this.#data === undefined ? value : `${this.#data}\n${value}`;
    else if (field === "event") this.#event = value;
  }

  #dispatch(out: Frame[]): void {
    if (this.#data !== undefined) {
      out.push(this.#event === "" ? { data: this.#data } : { event: this.#event, data: this.#data });
    }
    this.#data = undefined;
    this.#event = "";
  }
}

function breakIndex(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x0a || code === 0x0d) return at;
  }
  return -1;
}

/** Bytes that are made at once. */
const SLAB_BYTES = 8 * 1024;
/** Most bytes of one UTF-16 code unit. */
const UNIT_BYTES = 3;

const encoder = new TextEncoder();
let slab = new Uint8Array();
let used = 0;

/**
 * A text in UTF-8. Small ones lie beside each other in a common buffer, each byte of which is used once: 0.4 instead of
 * 1.3 µs for a text of 100 characters.
 */
export function encodeText(text: string): Uint8Array {
  const maxBytes = text.length * UNIT_BYTES;
  if (maxBytes > SLAB_BYTES / 4) return encoder.encode(text);
  if (maxBytes > slab.length - used) {
    slab = new Uint8Array(SLAB_BYTES);
    used = 0;
  }
  const start = used;
  used += encoder.encodeInto(text, slab.subarray(start)).written;
  return slab.subarray(start, used);
}
