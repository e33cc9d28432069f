import { assertEquals } from "@std/assert";
import { aggregateEvents } from "../../../lib/protocols/canonical/aggregate_events.ts";
import type { Prompt, Reply } from "../../../lib/protocols/canonical/types.ts";
import { isObject, type Json, type JsonObject, writeJson } from "../../../lib/json/mod.ts";
import { chat } from "../../../lib/protocols/chat/mod.ts";
import type { Codec } from "../../../lib/protocols/codec.ts";
import { geminiUpstream } from "../../../lib/protocols/gemini/upstream.ts";
import { messages } from "../../../lib/protocols/messages/mod.ts";
import { responses } from "../../../lib/protocols/responses/mod.ts";
import { ANSWERS, framesOf, partsOf, read, whole } from "./recorded_streams.ts";
import { targetOf } from "./prompts.ts";
import { writeAdapted } from "../translate/targets.ts";

Deno.test("a client sends back what the model wrote, with each signature on its part", () => {
  for (const name of ANSWERS.filter((name) => !name.startsWith("other_"))) {
    const frames = framesOf(name);
    const reply = aggregateEvents(read(frames));
    const received = partsOf(whole(frames)).flatMap(sentBack);
    for (const [protocol, codec, turn] of CLIENTS) {
      const prompt = turn(codec, reply);
      const contents = modelParts(writeAdapted(geminiUpstream, prompt, targetOf()));
      assertEquals(withoutIds(contents), withoutIds(received), `${name} through ${protocol}`);
      const ids = reply.blocks.flatMap((block) => block.type === "tool_call" ? [block.id] : []);
      assertEquals(contents.flatMap(callId), ids, `${name} through ${protocol}`);
    }
  }
});

/** For each client protocol: the answer written to the client, and the next request built from it. */
const CLIENTS: readonly [string, Codec, (codec: Codec, reply: Reply) => Prompt][] = [
  ["chat", chat, (codec, reply) => {
    const { choices } = codec.writeReply(reply, responseContextOf({ model: "a/b", messages: [USER] }, codec));
    const message = Array.isArray(choices) && isObject(choices[0]) ? choices[0].message ?? null : null;
    return codec.readPrompt({ model: "a/b", messages: [USER, message, USER] });
  }],
  ["responses", responses, (codec, reply) => {
    const request = {
      model: "a/b",
      input: "Hi",
      include: ["reasoning.encrypted_content"],
      reasoning: { summary: "auto" },
    };
    const { output } = codec.writeReply(reply, responseContextOf(request, codec));
    return codec.readPrompt({ model: "a/b", input: [USER, ...Array.isArray(output) ? output : [], USER] });
  }],
  ["messages", messages, (codec, reply) => {
    const request = { model: "a/b", max_tokens: 100, messages: [USER] };
    const { content } = codec.writeReply(reply, responseContextOf(request, codec));
    return codec.readPrompt({ ...request, messages: [USER, { role: "assistant", content }, USER] });
  }],
];

const USER = { role: "user", content: "Go on" };

function responseContextOf(request: JsonObject, codec: Codec) {
  return { requestId: "r1", createdAt: 1, model: "a/b", request, prompt: codec.readPrompt(request) };
}

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
