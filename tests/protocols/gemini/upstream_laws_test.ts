import { assertEquals } from "@std/assert";
import { aggregateEvents, eventsOf } from "../../../lib/protocols/canonical/aggregate_events.ts";
import type { Prompt, Reply } from "../../../lib/protocols/canonical/types.ts";
import { isObject, type Json, type JsonObject, parseJson, writeJson } from "../../../lib/json/mod.ts";
import { chat } from "../../../lib/protocols/chat/mod.ts";
import type { Codec, Frame } from "../../../lib/protocols/codec.ts";
import { geminiUpstream } from "../../../lib/protocols/gemini/upstream.ts";
import { messages } from "../../../lib/protocols/messages/mod.ts";
import { responses } from "../../../lib/protocols/responses/mod.ts";
import { type Random, seeded } from "../../support/random.ts";
import { ANSWERS, framesOf, NAMES, ORIGIN, partsOf, read, signedBefore, whole } from "./recorded_streams.ts";
import { targetOf } from "./prompts.ts";

Deno.test("reader() agrees with readReply() for the same answer", () => {
  for (const name of ANSWERS) {
    const frames = framesOf(name);
    assertEquals(signedBefore(aggregateEvents(read(frames))), geminiUpstream.readReply(whole(frames), ORIGIN), name);
  }
});

Deno.test("eventsOf() of a reply aggregates to it", () => {
  for (const name of ANSWERS) {
    const reply = aggregateEvents(read(framesOf(name)));
    assertEquals(aggregateEvents(eventsOf(reply)), reply, name);
  }
});

Deno.test("events obey the grammar for any mutated stream", () => {
  const random = seeded(20_261_121);
  for (let round = 0; round < 4_000; round++) {
    const name = random.pick(NAMES);
    let frames = framesOf(name);
    for (let change = random.below(3); change >= 0; change--) frames = damage(frames, random);
    // It throws where the grammar is violated, where the end is missing, and where the reader throws.
    const events = read(frames);
    const ends = events.filter(({ type }) => type === "finish" || type === "error");
    assertEquals(ends.length, 1, `${name}, round ${round}`);
  }
});

Deno.test("a mutated whole answer is a reply or a GatewayError", () => {
  const random = seeded(7);
  for (let round = 0; round < 1_000; round++) {
    const body = whole(framesOf(random.pick(ANSWERS)));
    const damaged = parseJson(damageValue(writeJson(body), random));
    if (!isObject(damaged)) continue;
    try {
      aggregateEvents(eventsOf(geminiUpstream.readReply(damaged, ORIGIN)));
    } catch (error) {
      assertEquals(error instanceof Error ? error.name : error, "GatewayError", writeJson(damaged));
    }
  }
});

Deno.test("a client sends back what the model wrote, with each signature on its part", () => {
  for (const name of ANSWERS.filter((name) => !name.startsWith("other_"))) {
    const frames = framesOf(name);
    const reply = aggregateEvents(read(frames));
    const said = partsOf(whole(frames)).flatMap(sentBack);
    for (const [protocol, codec, turn] of CLIENTS) {
      const prompt = turn(codec, reply);
      const contents = modelParts(geminiUpstream.writePrompt(prompt, targetOf()));
      assertEquals(withoutIds(contents), withoutIds(said), `${name} through ${protocol}`);
      const ids = reply.blocks.flatMap((block) => block.type === "tool_call" ? [block.id] : []);
      assertEquals(contents.flatMap(callId), ids, `${name} through ${protocol}`);
    }
  }
});

/** For each client protocol: the answer written to the client, and the next request built from it. */
const CLIENTS: readonly [string, Codec, (codec: Codec, reply: Reply) => Prompt][] = [
  ["chat", chat, (codec, reply) => {
    const { choices } = codec.writeReply(reply, echoOf({ model: "a/b", messages: [USER] }, codec));
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
    const { output } = codec.writeReply(reply, echoOf(request, codec));
    return codec.readPrompt({ model: "a/b", input: [USER, ...Array.isArray(output) ? output : [], USER] });
  }],
  ["messages", messages, (codec, reply) => {
    const request = { model: "a/b", max_tokens: 100, messages: [USER] };
    const { content } = codec.writeReply(reply, echoOf(request, codec));
    return codec.readPrompt({ ...request, messages: [USER, { role: "assistant", content }, USER] });
  }],
];

const USER = { role: "user", content: "Go on" };

function echoOf(request: JsonObject, codec: Codec) {
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

/** A stream with something wrong: a frame lost, doubled, moved, cut, or with another value in it. */
function damage(frames: readonly Frame[], random: Random): Frame[] {
  const at = random.below(frames.length);
  const frame = frames[at];
  if (frame === undefined) return [...frames];
  const before = frames.slice(0, at);
  const after = frames.slice(at + 1);
  switch (random.below(7)) {
    case 0:
      return [...before, ...after];
    case 1:
      return [...before, frame, frame, ...after];
    case 2:
      return [frame, ...before, ...after];
    case 3:
      return [...before, { data: frame.data.slice(0, random.below(frame.data.length)) }, ...after];
    case 4:
      return before;
    case 5: {
      const place = random.below(frame.data.length);
      const junk = '{}[]",:0a\u0000\ud800'.charAt(random.below(11));
      return [...before, { data: frame.data.slice(0, place) + junk + frame.data.slice(place + 1) }, ...after];
    }
    default:
      return [...before, { data: damageValue(frame.data, random) }, ...after];
  }
}

const JUNK: readonly Json[] = [null, true, 0, -1, 1.5, "", "x", [], {}, [[]], { error: {} }, [null], { text: 7 }];

/** JSON text with one value, anywhere in it, replaced by another; invalid JSON is unchanged. */
function damageValue(text: string, random: Random): string {
  let value: Json;
  try {
    value = parseJson(text);
  } catch {
    return text;
  }
  const holders: (JsonObject | Json[])[] = [];
  collect(value, holders);
  if (holders.length === 0) return text;
  const holder = random.pick(holders);
  const junk = random.pick(JUNK);
  if (Array.isArray(holder)) {
    if (holder.length > 0) holder[random.below(holder.length)] = junk;
  } else {
    const names = Object.keys(holder);
    if (names.length > 0) holder[random.pick(names)] = junk;
  }
  return writeJson(value);
}

function collect(value: Json, holders: (JsonObject | Json[])[]): void {
  if (!Array.isArray(value) && !isObject(value)) return;
  holders.push(value);
  for (const member of Object.values(value)) collect(member ?? null, holders);
}

Deno.test("writePrompt() is deterministic", () => {
  for (const name of ANSWERS) {
    const reply = aggregateEvents(read(framesOf(name)));
    for (const [, codec, turn] of CLIENTS) {
      const write = () => writeJson(geminiUpstream.writePrompt(turn(codec, reply), targetOf()));
      assertEquals(write(), write(), name);
    }
  }
});
