/** Reads server-sent events from upstreams, and writes them for clients. */
import type { Machine } from "../protocols/canonical/types.ts";
import { GatewayError } from "../errors.ts";
import type { Frame } from "../protocols/codec.ts";

/** Longest event that an upstream may send, in UTF-16 code units. */
const MAX_EVENT_LENGTH = 8 * 1024 * 1024;

/**
 * Returns the text of one event. Lines end with LF, and a space follows each colon, because some clients need that.
 * @throws {RangeError} if the name or the data has a line break, which would begin another line of the event
 */
export function formatFrame({ event, data }: Frame): string {
  if (hasBreak(data)) throw new RangeError("Cannot write an event: its data has a line break");
  if (event === undefined) return "data: " + data + "\n\n";
  if (hasBreak(event)) throw new RangeError("Cannot write an event: its name has a line break");
  return "event: " + event + "\ndata: " + data + "\n\n";
}

/** Returns the text of several events. @throws {RangeError} as `formatFrame` */
export function formatFrames(frames: readonly Frame[]): string {
  let text = "";
  for (const frame of frames) text += formatFrame(frame);
  return text;
}

function hasBreak(text: string): boolean {
  return text.includes("\n") || text.includes("\r");
}

/**
 * Reads a stream of text as the WHATWG specification demands, with one exception: an event without a blank line after
 * it at the end of the stream is still returned, because some upstreams forget that line. Lines of an event's data are
 * joined by LF. `push` throws a {@linkcode GatewayError} (`upstream`) for an event that is longer than the limit.
 */
export class SseReader implements Machine<string, Frame> {
  readonly #limit: number;
  /** Pieces of a line that is not complete. They are joined once, so that the cost of a long line is linear. */
  #pieces: string[] = [];
  #piecesLength = 0;
  #data: string | undefined;
  #event = "";
  #started = false;
  /** True if the last chunk ended with CR. An LF at the start of the next chunk belongs to that line end. */
  #afterReturn = false;

  constructor(limit: number = MAX_EVENT_LENGTH) {
    this.#limit = limit;
  }

  push(chunk: string): Frame[] {
    const frames: Frame[] = [];
    let offset = this.#afterReturn && chunk.startsWith("\n") ? 1 : 0;
    if (chunk !== "") this.#afterReturn = false;
    const hasReturn = chunk.includes("\r");
    while (offset < chunk.length) {
      const end = hasReturn ? breakIndex(chunk, offset) : chunk.indexOf("\n", offset);
      if (end < 0) {
        this.#pieces.push(chunk.slice(offset));
        this.#piecesLength += chunk.length - offset;
        this.#checkLength(this.#piecesLength);
        break;
      }
      let line = chunk.slice(offset, end);
      if (this.#pieces.length > 0) {
        line = this.#pieces.join("") + line;
        this.#pieces = [];
        this.#piecesLength = 0;
      }
      this.#takeLine(line, frames);
      offset = end + 1;
      if (chunk[end] === "\r") {
        if (offset === chunk.length) this.#afterReturn = true;
        else if (chunk[offset] === "\n") offset++;
      }
    }
    return frames;
  }

  end(): Frame[] {
    const frames: Frame[] = [];
    if (this.#pieces.length > 0) this.#takeLine(this.#pieces.join(""), frames);
    this.#dispatch(frames);
    return frames;
  }

  /** Checks the length of the current event with a line that is added to it. */
  #checkLength(lineLength: number): void {
    if ((this.#data?.length ?? 0) + this.#event.length + lineLength > this.#limit) {
      throw new GatewayError(
        "upstream",
        `Cannot read the upstream's stream: an event is longer than ${this.#limit} characters`,
      );
    }
  }

  #takeLine(line: string, frames: Frame[]): void {
    if (!this.#started) {
      this.#started = true;
      if (line.startsWith("\ufeff")) line = line.slice(1);
    }
    if (line === "") return this.#dispatch(frames);
    this.#checkLength(line.length);
    // A fast path for nearly all lines.
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

  #dispatch(frames: Frame[]): void {
    if (this.#data !== undefined) {
      frames.push(this.#event === "" ? { data: this.#data } : { event: this.#event, data: this.#data });
    }
    this.#data = undefined;
    this.#event = "";
  }
}

function breakIndex(text: string, from: number): number {
  for (let offset = from; offset < text.length; offset++) {
    const code = text.charCodeAt(offset);
    if (code === 0x0a || code === 0x0d) return offset;
  }
  return -1;
}
