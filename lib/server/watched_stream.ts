/** Sends large answers in pieces, as fast as their clients read them, and ends those that stay unread. */
import { Buffer } from "node:buffer";
import { unreadError } from "../errors.ts";
import { PhaseTimer, type PhaseTimers } from "../phase_timers.ts";
import { LONG_TEXT_CHARS } from "../scheduler.ts";
import { characterEnd } from "../text.ts";
import { JsonAnswer } from "./json_response.ts";

/** Characters or bytes per piece. */
export const PIECE_LENGTH = 256 * 1024;

/**
 * Returns the response with a JSON text. A long text is sent in pieces: the runtime would keep all of it until the client
 * has read it, without a limit of time.
 * @param pieces the text, in parts that do not begin or end within a character
 */
export function wholeAnswer(pieces: readonly string[], watched: Omit<WatchedAnswer, "ended">): Response {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  if (length <= LONG_TEXT_CHARS) return new JsonAnswer(pieces.join(""));
  const bytes = pieces.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0);
  return new Response(byteStream(shortPieces(pieces), { ...watched, ended() {} }), {
    headers: { "content-type": "application/json", "content-length": String(bytes) },
  });
}

function* shortPieces(pieces: Iterable<string>): Generator<string> {
  for (const piece of pieces) {
    for (let start = 0; start < piece.length;) {
      const end = characterEnd(piece, start + PIECE_LENGTH);
      yield piece.slice(start, end);
      start = end;
    }
  }
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
