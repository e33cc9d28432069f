/** Recorded shapes of upstream streams that the tests of the reader share. */
import type { Reply } from "../../../lib/protocols/canonical/types.ts";
import type { Json, JsonObject } from "../../../lib/json/mod.ts";
import type { Frame } from "../../../lib/protocols/codec.ts";
import endings from "../../fixtures/chat/upstream_endings.json" with { type: "json" };
import reasoning from "../../fixtures/chat/upstream_reasoning.json" with { type: "json" };
import text from "../../fixtures/chat/upstream_text.json" with { type: "json" };
import tools from "../../fixtures/chat/upstream_tools.json" with { type: "json" };

/** One stream, and the expected result. */
export interface Stream {
  /** Data of its frames: strings as they are, all else as JSON. */
  frames: Json[];
  /** The same generation, not streamed. */
  whole?: JsonObject;
  reply?: Reply;
  error?: { kind: string; code?: string };
}

/** All streams by name. */
export const STREAMS: Readonly<Record<string, Stream>> = { ...text, ...tools, ...reasoning, ...endings } as Record<
  string,
  unknown
> as Record<string, Stream>;

/** Frames of a stream. */
export function framesOf({ frames }: Stream): Frame[] {
  return frames.map((data) => ({ data: typeof data === "string" ? data : JSON.stringify(data) }));
}
