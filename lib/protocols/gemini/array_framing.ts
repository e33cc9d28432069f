/** Writes streams as JSON arrays with one element per piece, the form of Google's streams without `alt=sse`. */
import type { StreamFraming } from "../codec.ts";

/** Creates the framing of one stream. */
export function arrayFraming(): StreamFraming {
  let isFirst = true;
  return {
    contentType: "application/json; charset=utf-8",
    write(frames) {
      let text = "";
      for (const { data } of frames) {
        text += (isFirst ? "[" : ",\r\n") + data;
        isFirst = false;
      }
      return text;
    },
    end: () => isFirst ? "[]" : "]",
  };
}
