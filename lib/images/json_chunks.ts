/** Writes JSON with base64 in chunks, so that an image of 30 MB is never copied into a larger string. */
import { type JsonObject, writeJson } from "../json/mod.ts";
import { PhaseTimer, type PhaseTimers } from "../phase_timers.ts";
import { unreadError } from "../errors.ts";

/** Characters per chunk. */
const PIECE_LENGTH = 256 * 1024;

/** Writes a JSON object with `b64_json` between the other members. */
export function* imageObject(before: JsonObject, base64: string, after: JsonObject): Generator<string> {
  yield `{${members(before, "", ",")}"b64_json":"`;
  for (let start = 0; start < base64.length; start += PIECE_LENGTH) {
    // Escaping leaves base64 unchanged and keeps any other content inside the string.
    yield writeJson(base64.slice(start, start + PIECE_LENGTH)).slice(1, -1);
  }
  yield `"${members(after, ",", "")}}`;
}

/** Returns the JSON text of an object's members between `before` and `after`; "" if there are no members. */
export function members(object: JsonObject, before: string, after: string): string {
  const text = writeJson(object).slice(1, -1);
  return text === "" ? "" : before + text + after;
}

/** Joins small chunks, so that a small event becomes one write. */
export function* joined(pieces: Iterable<string>): Generator<string> {
  let text = "";
  for (const piece of pieces) {
    text += piece;
    if (text.length < PIECE_LENGTH) continue;
    yield text;
    text = "";
  }
  if (text !== "") yield text;
}

/** Callbacks about an answer while its client reads it. */
export interface WatchedAnswer {
  /** Longest time that the client may take to read data, in milliseconds. */
  unreadMs: number;
  timers: PhaseTimers;
  /** Called once, when the answer was read completely, its client disconnected, or the client read too slowly. */
  ended: () => void;
}

/** Returns a stream of text chunks, which are encoded as they are read. */
export function byteStream(pieces: Iterable<string>, watched: WatchedAnswer): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return watchedStream(joined(pieces)[Symbol.iterator](), { ...watched, toBytes: (text) => encoder.encode(text) });
}

/** Returns a stream of bytes, which are copied piece by piece as they are read. */
export function pieceStream(bytes: Uint8Array<ArrayBuffer>, watched: WatchedAnswer): ReadableStream<Uint8Array> {
  return watchedStream(slicePieces(bytes), { ...watched, toBytes: (piece) => piece });
}

function* slicePieces(bytes: Uint8Array<ArrayBuffer>): Generator<Uint8Array<ArrayBuffer>> {
  // The runtime detaches enqueued buffers, and concurrent repeats share this answer.
  for (let start = 0; start < bytes.length; start += PIECE_LENGTH) yield bytes.slice(start, start + PIECE_LENGTH);
}

function watchedStream<T>(
  pieces: Iterator<T>,
  { unreadMs, timers, ended, toBytes }: WatchedAnswer & { toBytes: (piece: T) => Uint8Array },
): ReadableStream<Uint8Array> {
  /** Undefined after the end, so that its memory can be freed. */
  let remaining: Iterator<T> | undefined = pieces;
  const timer = new PhaseTimer(timers);
  const unread = {
    ms: unreadMs,
    expire() {
      controller?.error(unreadError(unreadMs));
      end();
    },
  };
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  function end(): void {
    if (remaining === undefined) return;
    remaining = undefined;
    timer.stop();
    ended();
  }
  return new ReadableStream<Uint8Array>({
    start(own) {
      controller = own;
      timer.begin(unread);
    },
    pull(controller) {
      timer.stop();
      const piece = remaining?.next();
      if (piece === undefined || piece.done === true) {
        controller.close();
        end();
        return;
      }
      controller.enqueue(toBytes(piece.value));
      timer.begin(unread);
    },
    cancel: end,
  }, { highWaterMark: 0 });
}
