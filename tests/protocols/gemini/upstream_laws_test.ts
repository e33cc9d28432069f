import { assertEquals } from "@std/assert";
import { aggregateEvents } from "../../../lib/protocols/canonical/aggregate_events.ts";
import { isObject, type Json, type JsonObject, writeJson } from "../../../lib/json/mod.ts";
import { geminiUpstream } from "../../../lib/protocols/gemini/upstream.ts";
import { PROTOCOLS } from "../../golden/crossings.ts";
import { replay } from "../../golden/round_trips.ts";
import { ANSWERS, framesOf, partsOf, read, whole } from "./recorded_streams.ts";
import { targetOf } from "./prompts.ts";
import { writeAdapted } from "../translate/targets.ts";

Deno.test("a client sends back what the model wrote, with each signature on its part", () => {
  for (const name of ANSWERS.filter((name) => !name.startsWith("other_"))) {
    const frames = framesOf(name);
    const reply = aggregateEvents(read(frames));
    const received = partsOf(whole(frames)).flatMap(sentBack);
    for (const protocol of PROTOCOLS) {
      const contents = modelParts(writeAdapted(geminiUpstream, replay(reply, protocol), targetOf()));
      assertEquals(withoutIds(contents), withoutIds(received), `${name} through ${protocol}`);
      const ids = reply.blocks.flatMap((block) => block.type === "tool_call" ? [block.id] : []);
      assertEquals(contents.flatMap(callId), ids, `${name} through ${protocol}`);
    }
  }
});

/** The form in which a part returns: only signed thoughts, and only texts that are not empty. */
function sentBack(part: JsonObject): JsonObject[] {
  if (part.thought === true) return part.thoughtSignature === undefined ? [] : [part];
  if (part.text !== undefined) return part.text === "" ? [] : [part];
  const call = isObject(part.functionCall) ? part.functionCall : {};
  return [{ ...part, functionCall: { args: {}, ...call } }];
}

function modelParts({ contents }: JsonObject): JsonObject[] {
  return Array.isArray(contents)
    ? contents.filter(isObject).filter(({ role }) => role === "model").flatMap((content) =>
      partsOf({
        candidates: [{ content }],
      })
    )
    : [];
}

function callId({ functionCall }: JsonObject): Json[] {
  return isObject(functionCall) ? [functionCall.id ?? null] : [];
}

/** Numbers that are kept as text compare as text. */
function withoutIds(parts: readonly JsonObject[]): Json {
  return JSON.parse(writeJson(parts.map((part) => {
    if (!isObject(part.functionCall)) return part;
    const { id: _, ...functionCall } = part.functionCall;
    return { ...part, functionCall };
  })));
}
