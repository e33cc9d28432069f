/** Citations of web pages, which chat and responses write in nearly the same form. */
import type { Citation, TextRange } from "./types.ts";
import { isObject, type Json, type JsonObject } from "../../json/mod.ts";

/**
 * Returns the members of a `url_citation`; undefined for citations without a URL. A citation without a position covers
 * its whole block.
 * @param block range of the cited block in the text that positions count in
 */
export function urlCitation({ from, value }: Citation, block: TextRange): JsonObject | undefined {
  if (from === "chat") return isObject(value.url_citation) ? value.url_citation : undefined;
  const { url, title } = value;
  if (typeof url !== "string") return undefined;
  const at = (position: Json | undefined, otherwise: number) =>
    from === "responses" && typeof position === "number" ? block.start + position : otherwise;
  return {
    start_index: at(value.start_index, block.start),
    end_index: at(value.end_index, block.end),
    url,
    title: typeof title === "string" ? title : "",
  };
}

/** Counts code points. The sum over pieces is exact, even if one ends inside a surrogate pair. */
export function countCodePoints(text: string): number {
  let count = 0;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    if (unit < 0xdc00 || unit > 0xdfff) count++;
  }
  return count;
}
