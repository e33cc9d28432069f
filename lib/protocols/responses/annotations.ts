/** Writes citations as annotations of a text part. */
import type { Citation, TextRange } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import { objectOf, stringOf } from "../members.ts";

/**
 * Writes a citation as an annotation.
 * @param range the cited text, for protocols that do not report it
 * @returns undefined for citations without a URL
 */
export function writeAnnotation({ from, value }: Citation, range: TextRange): JsonObject | undefined {
  switch (from) {
    case "responses":
      return value;
    case "chat": {
      const inner = objectOf(value.url_citation);
      return inner === undefined ? undefined : { type: "url_citation", ...inner };
    }
    case "messages": {
      const url = stringOf(value.url);
      if (url === undefined) return undefined;
      return {
        type: "url_citation",
        start_index: range.start,
        end_index: range.end,
        url,
        title: stringOf(value.title) ?? "",
      };
    }
  }
}
