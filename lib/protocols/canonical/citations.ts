/** Writes citations of web pages, whose form is nearly the same in chat and responses, and counts their positions. */
import type { Citation, TextRange } from "./types.ts";
import { isObject, type Json, type JsonObject } from "../../json/mod.ts";

/**
 * Returns the members of a `url_citation`; undefined for citations without a URL. Positions count from the cited block.
 * A citation without a position in it covers the whole block.
 * @param block range of the cited block within the text in which the client counts positions
 */
export function urlCitation({ from, value }: Citation, block: TextRange): JsonObject | undefined {
  const cited = from === "chat" ? value.url_citation : value;
  if (!isObject(cited) || typeof cited.url !== "string") return undefined;
  const { url, title } = cited;
  const isCounted = from === "chat" || from === "responses";
  const positionOr = (position: Json | undefined, fallback: number) =>
    isCounted && typeof position === "number" && position >= 0 ? block.start + position : fallback;
  return {
    ...(from === "chat" && cited),
    start_index: positionOr(cited.start_index, block.start),
    end_index: positionOr(cited.end_index, block.end),
    url,
    title: typeof title === "string" ? title : "",
  };
}

/** Returns an annotation of chat, whose positions are moved by a number of code points. */
export function moveAnnotation(value: JsonObject, by: number): JsonObject {
  const { url_citation: cited } = value;
  if (by === 0 || !isObject(cited)) return value;
  const moved = (position: Json | undefined) => typeof position === "number" ? position + by : position;
  return {
    ...value,
    url_citation: { ...cited, start_index: moved(cited.start_index), end_index: moved(cited.end_index) },
  };
}

const LOW_SURROGATE = /[\udc00-\udfff]/;

/** Returns the number of code points. Counts of a text's pieces add up, even if a surrogate pair is split. */
export function countCodePoints(text: string): number {
  // V8 stores most texts with one byte per character, which this expression cannot match: it reads none of them.
  if (!LOW_SURROGATE.test(text)) return text.length;
  let count = 0;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    if (unit < 0xdc00 || unit > 0xdfff) count++;
  }
  return count;
}
