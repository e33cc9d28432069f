/** Writes citations of web pages, whose form is nearly the same in chat and responses, and counts their positions. */
import type { Citation, TextRange } from "./types.ts";
import { isObject, type Json, type JsonObject } from "../../json/mod.ts";

/**
 * Returns the members of a `url_citation`; undefined for citations without a URL. A citation without a position covers
 * its whole block.
 * @param block range of the cited block within the text in which the client counts positions
 */
export function urlCitation({ from, value }: Citation, block: TextRange): JsonObject | undefined {
  if (from === "chat") return isObject(value.url_citation) ? value.url_citation : undefined;
  const { url, title } = value;
  if (typeof url !== "string") return undefined;
  const positionOr = (position: Json | undefined, fallback: number) =>
    from === "responses" && typeof position === "number" ? block.start + position : fallback;
  return {
    start_index: positionOr(value.start_index, block.start),
    end_index: positionOr(value.end_index, block.end),
    url,
    title: typeof title === "string" ? title : "",
  };
}

/** Returns the number of code points. Counts of a text's pieces add up, even if a surrogate pair is split. */
export function countCodePoints(text: string): number {
  let count = 0;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    if (unit < 0xdc00 || unit > 0xdfff) count++;
  }
  return count;
}
