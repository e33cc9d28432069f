/** Writes JSON with base64 in chunks, so that an image of 30 MB is never copied into a larger string. */
import { type JsonObject, writeJson } from "../json/mod.ts";
import { PIECE_LENGTH } from "../server/watched_stream.ts";

/** Writes a JSON object with `b64_json` between the other members. */
export function* imageObject(before: JsonObject, base64: string, after: JsonObject): Generator<string> {
  yield `{${membersText(before, "", ",")}"b64_json":"`;
  for (let start = 0; start < base64.length; start += PIECE_LENGTH) {
    // Escaping leaves base64 unchanged and keeps any other content inside the string.
    yield writeJson(base64.slice(start, start + PIECE_LENGTH)).slice(1, -1);
  }
  yield `"${membersText(after, ",", "")}}`;
}

/** Returns the JSON text of an object's members between `before` and `after`; "" if there are no members. */
export function membersText(object: JsonObject, before: string, after: string): string {
  const text = writeJson(object).slice(1, -1);
  return text === "" ? "" : before + text + after;
}
