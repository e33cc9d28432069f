/** Citations as chat annotations, whose positions count in the whole text of the answer. */
import type { Citation, TextRange } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import { numberOf, stringOf } from "../members.ts";

/** Counts code points. The sum over pieces is exact, even if one ends inside a surrogate pair. */
export function countCodePoints(text: string): number {
  let count = 0;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    if (unit < 0xdc00 || unit > 0xdfff) count++;
  }
  return count;
}

/**
 * Writes a citation of a text block that covers `span` of the answer. `undefined` for citations without a URL, which
 * chat does not have.
 */
export function writeAnnotation({ from, value }: Citation, span: TextRange): JsonObject | undefined {
  if (from === "chat") return value;
  const url = stringOf(value.url);
  if (url === undefined) return undefined;
  const start = from === "responses" ? numberOf(value.start_index) : undefined;
  const end = from === "responses" ? numberOf(value.end_index) : undefined;
  return {
    type: "url_citation",
    url_citation: {
      // A citation without a position covers the whole block.
      start_index: start === undefined ? span.start : span.start + start,
      end_index: end === undefined ? span.end : span.start + end,
      url,
      title: stringOf(value.title) ?? "",
    },
  };
}
