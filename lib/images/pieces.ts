/** JSON around pictures, piece by piece: a picture of 30 MB is never copied into a larger text. */
import { type JsonObject, writeJson } from "../json.ts";

/** Characters handed on at a time. */
const PIECE_LENGTH = 256 * 1024;

/** A JSON object with the member `b64_json` among others, in the order given. */
export function* pictureObject(before: JsonObject, base64: string, after: JsonObject): Generator<string> {
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

/** The text as bytes, made as they are read. */
export function byteStream(pieces: Iterable<string>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const iterator = joined(pieces)[Symbol.iterator]();
  return new ReadableStream<Uint8Array>({
    pull(controller) {
      const { done, value } = iterator.next();
      if (done === true) controller.close();
      else controller.enqueue(encoder.encode(value));
    },
  }, { highWaterMark: 0 });
}
