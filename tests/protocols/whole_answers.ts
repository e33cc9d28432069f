/** Whole answers of the recorded streams. */
import { isObject, type JsonObject, parseJson } from "../../lib/json/mod.ts";
import type { RecordedStream } from "../golden/recorded.ts";
import { STREAMS as CHAT } from "./chat/upstream_streams.ts";
import { whole } from "./gemini/recorded_streams.ts";
import { accumulate } from "./messages/accumulate.ts";
import { SOUND } from "./messages/upstream_answers.ts";

/** Streams whose last event contradicts their items. */
const ODD: ReadonlySet<string> = new Set(["shared_place", "items_without_done", "codex_done", "ids_that_change"]);

/** Returns the whole answer of the same generation; undefined if the stream breaks off or is irregular. */
export function wholeOf({ protocol, name, frames }: RecordedStream): JsonObject | undefined {
  switch (protocol) {
    case "chat":
      return CHAT[name]?.whole;
    case "messages":
      return SOUND.includes(name) ? accumulate(frames) : undefined;
    case "responses": {
      const last = frames.map(({ data }) => data.startsWith("{") ? parseJson(data) : null).findLast((event) =>
        isObject(event) && (event.type === "response.completed" || event.type === "response.incomplete")
      );
      const response = isObject(last) && isObject(last.response) ? last.response : undefined;
      // Some servers omit the items at the end.
      return Array.isArray(response?.output) && response.output.length > 0 && !ODD.has(name) ? response : undefined;
    }
    case "gemini":
      return name.startsWith("error_") ? undefined : whole(frames);
  }
}
