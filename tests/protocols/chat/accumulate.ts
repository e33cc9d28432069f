/** Assembles a stream of chunks as a client does, independently of the code that makes it. */
import { assert, assertEquals } from "@std/assert";
import { isObject, type JsonObject } from "../../../lib/json/mod.ts";
import type { Frame } from "../../../lib/protocols/codec.ts";

/** The chunks of a stream that ended well, without the end mark. */
export function chunksOf(frames: readonly Frame[]): JsonObject[] {
  assertEquals(frames.at(-1), { data: "[DONE]" });
  return frames.slice(0, -1).map(({ data }) => {
    const chunk: unknown = JSON.parse(data);
    assert(isObject(chunk));
    return chunk;
  });
}

/** The completion that a stream spells out: members of deltas are concatenated, lists are joined by `index`. */
export function accumulate(frames: readonly Frame[]): JsonObject {
  const chunks = chunksOf(frames);
  const message: JsonObject = {};
  let finish: unknown = null;
  let usage: unknown;
  for (const chunk of chunks) {
    assertEquals([chunk.id, chunk.created, chunk.model], [chunks[0]?.id, chunks[0]?.created, chunks[0]?.model]);
    assertEquals(chunk.object, "chat.completion.chunk");
    if (isObject(chunk.usage)) usage = chunk.usage;
    assert(Array.isArray(chunk.choices));
    const [choice] = chunk.choices;
    if (choice === undefined) continue;
    assert(isObject(choice) && isObject(choice.delta));
    assertEquals([choice.index, choice.logprobs], [0, null]);
    assertEquals(finish, null, "a delta after the reason");
    if (choice.finish_reason !== null) finish = choice.finish_reason;
    merge(message, choice.delta);
  }
  for (const call of Array.isArray(message.tool_calls) ? message.tool_calls : []) {
    if (isObject(call)) delete call.index;
  }
  return {
    id: chunks[0]?.id,
    object: "chat.completion",
    created: chunks[0]?.created,
    model: chunks[0]?.model,
    choices: [{ index: 0, message, logprobs: null, finish_reason: finish as string }],
    ...(isObject(usage) && { usage }),
  };
}

/**
 * As the Python SDK joins deltas: text other than a type grows, lists of entries with an index are merged, null is
 * nothing yet.
 */
function merge(into: JsonObject, delta: JsonObject): void {
  for (const [name, value] of Object.entries(delta)) {
    const had = into[name];
    if (had === undefined || had === null || name === "type") {
      into[name] = structuredClone(value);
    } else if (typeof had === "string" && typeof value === "string") {
      into[name] = had + value;
    } else if (isObject(had) && isObject(value)) {
      merge(had, value);
    } else if (Array.isArray(had) && Array.isArray(value)) {
      for (const entry of value) {
        assert(isObject(entry) && typeof entry.index === "number", `an entry of ${name} without an index`);
        const old = had[entry.index];
        if (isObject(old)) merge(old, { ...entry, index: undefined });
        else had[entry.index] = structuredClone(entry);
      }
    } else {
      assertEquals(value, undefined, `cannot join ${name}`);
    }
  }
}
