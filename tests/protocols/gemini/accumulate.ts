/** Puts a stream of generateContent together, as chats of Google's SDKs and Gemini CLI do. */
import { assert } from "@std/assert";
import { isObject, type JsonObject, parseJson } from "../../../lib/json/mod.ts";
import type { Frame } from "../../../lib/protocols/codec.ts";
import { partsOf } from "./recorded_streams.ts";

/** The whole answer: adjacent texts are one part, unless the later one is signed. */
export function accumulate(frames: readonly Frame[]): JsonObject {
  const pieces = frames.map(({ data }) => parseJson(data)).filter(isObject);
  const parts: JsonObject[] = [];
  for (const piece of pieces) {
    const ofPiece = partsOf(piece);
    // SDKs forget an answer with a piece that has no content.
    assert(ofPiece.length > 0, "Expected parts in every piece");
    for (const part of ofPiece) {
      const last = parts.at(-1);
      const goesOn = typeof part.text === "string" && part.thoughtSignature === undefined &&
        typeof last?.text === "string" && last.thought === part.thought;
      if (goesOn) last.text = `${last.text}${part.text}`;
      else parts.push({ ...part });
    }
  }
  const last = pieces.at(-1);
  const [candidate] = Array.isArray(last?.candidates) ? last.candidates : [];
  assert(last !== undefined && isObject(candidate) && candidate.finishReason !== undefined, "Expected a finish reason");
  return { ...last, candidates: [{ ...candidate, content: { parts, role: "model" } }] };
}
