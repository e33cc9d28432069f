/** JSON around images, piece by piece: an image of 30 MB is never copied into a larger text. */
import { type JsonObject, writeJson } from "../json/json.ts";
import { type ReaderWatch, watchReader } from "../request/reader_watch.ts";

/** Characters handed on at a time. */
const PIECE_LENGTH = 256 * 1024;

/** A JSON object with the member `b64_json` among others, in the order given. */
export function* imageObject(before: JsonObject, base64: string, after: JsonObject): Generator<string> {
  yield `{${members(before, "", ",")}"b64_json":"`;
  for (let at = 0; at < base64.length; at += PIECE_LENGTH) {
    // Base64 stays as it is; whatever else an upstream may have sent cannot end the string.
    yield writeJson(base64.slice(at, at + PIECE_LENGTH)).slice(1, -1);
  }
  yield `"${members(after, ",", "")}}`;
}

/** The members of an object, with what goes before and after them where there are any. */
export function members(object: JsonObject, before: string, after: string): string {
  const text = writeJson(object).slice(1, -1);
  return text === "" ? "" : before + text + after;
}

/** The same text in fewer pieces: small ones are joined, so that a small event is one write. */
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

/** A whole answer whose reader is watched. */
export interface WatchedAnswer {
  /** How long the client may leave it unread, in milliseconds. */
  unreadMs: number;
  /** Called once, when the answer was read or never will be. */
  ended: () => void;
}

/** The text as bytes, made as they are read. */
export function byteStream(pieces: Iterable<string>, watched: WatchedAnswer): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return watchedStream(joined(pieces)[Symbol.iterator](), { ...watched, toBytes: (text) => encoder.encode(text) });
}

/** Bytes that are there, given as they are read. */
export function pieceStream(bytes: Uint8Array<ArrayBuffer>, watched: WatchedAnswer): ReadableStream<Uint8Array> {
  return watchedStream(cut(bytes), { ...watched, toBytes: (piece) => piece });
}

function* cut(bytes: Uint8Array<ArrayBuffer>): Generator<Uint8Array<ArrayBuffer>> {
  // Handing a piece over takes it away from its owner, and others get the same answer.
  for (let at = 0; at < bytes.length; at += PIECE_LENGTH) yield bytes.slice(at, at + PIECE_LENGTH);
}

function watchedStream<T>(
  pieces: Iterator<T>,
  { unreadMs, ended, toBytes }: WatchedAnswer & { toBytes: (piece: T) => Uint8Array },
): ReadableStream<Uint8Array> {
  /** Absent once it has ended: what it holds is free then. */
  let rest: Iterator<T> | undefined = pieces;
  let watch: ReaderWatch | undefined;
  function end(): void {
    if (rest === undefined) return;
    rest = undefined;
    watch?.stop();
    ended();
  }
  return new ReadableStream<Uint8Array>({
    start(controller) {
      watch = watchReader(unreadMs, (error) => {
        controller.error(error);
        end();
      });
    },
    pull(controller) {
      watch?.asks();
      const piece = rest?.next();
      if (piece === undefined || piece.done === true) {
        controller.close();
        end();
        return;
      }
      controller.enqueue(toBytes(piece.value));
      watch?.given();
    },
    cancel: end,
  }, { highWaterMark: 0 });
}
