/** Golden files of answers: each has an upstream's stream beside the answers to clients of every other protocol. */
import { aggregateEvents } from "../../lib/protocols/canonical/aggregate_events.ts";
import type { Protocol, ReplyEvent } from "../../lib/protocols/canonical/types.ts";
import { GatewayError } from "../../lib/errors.ts";
import { isObject, type Json, type JsonObject, parseJson } from "../../lib/json/mod.ts";
import type { Frame } from "../../lib/protocols/codec.ts";
import { CLIENTS, PROTOCOLS, responseContextOf } from "./crossings.ts";
import { readEvents, recordedStream } from "./recorded.ts";
import { formatJson } from "./format_json.ts";

/**
 * Names of golden files, and of the recorded streams that they show. Writers see only events, so a stream has a golden
 * file only if no other file has events of the same kinds. The reader's test compares the events of every stream.
 */
const CASES: Readonly<Record<Protocol, Readonly<Record<string, string>>>> = {
  chat: {
    text: "text as OpenAI streams it",
    refusal_silent: "nothing at all, ended in good order",
    parallel_tools: "text, then parallel calls one after the other",
    custom_tools: "custom tools",
    reasoning_unsigned: "reasoning_content as DeepSeek streams it",
    reasoning_hidden: "signed text, redacted text and omitted text",
    reasoning_summary: "a summary and its encrypted half",
    refusal: "refusal",
    content_filter: "content filter",
    stop_sequence: "the stop string, where vLLM names it",
    citations: "annotations become citations",
    usage_on_any_chunk: "the last usage counts, on whatever chunk",
    no_usage: "no id, no usage",
    error_first: "an error first",
    error_middle: "an error in the middle, with choices",
    cut: "cut in the text",
  },
  responses: {
    text_after_tools: "text_call_text",
    blank_arguments: "call_without_arguments",
    custom_tools: "custom_call",
    reasoning_signed: "reasoning",
    length_in_call: "length_in_call",
    citations: "hosted_search",
    error_first: "error_first",
    error_middle: "error_nested",
  },
  messages: {
    text: "text",
    interleaved_tools: "interleaved_blocks",
    reasoning_signed: "thinking",
    reasoning_hidden: "hidden_thinking",
    reasoning_unsigned: "unsigned_thinking",
    reasoning_between_tools: "interleaved_thinking",
    refusal: "refusal",
    length: "length",
    stop_sequence: "stop_sequence",
    citations: "server_tools",
    pause: "pause",
    usage_of_every_class: "cached",
    error_first: "error_first",
    cut: "cut",
  },
  gemini: {
    empty: "nothing",
    reasoning_signed: "thoughts_signed",
    reasoning_then_tools: "thoughts_text_call",
    refusal: "safety",
    prompt_blocked: "prompt_blocked",
    other_parts: "other_parts",
  },
};

/** The whole answer or the error in its place, and the frames of the stream. */
interface ClientAnswer {
  reply?: JsonObject;
  error?: JsonObject;
  frames: readonly Frame[];
}

function answerFor(client: Protocol, events: readonly ReplyEvent[]): ClientAnswer {
  const context = responseContextOf(client);
  const codec = CLIENTS[client];
  const writer = codec.writer(context);
  const frames = [...events.flatMap((event) => writer.push(event)), ...writer.end()];
  try {
    return { reply: codec.writeReply(aggregateEvents(events), context), frames };
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    const { status, body } = codec.writeError(error, context.requestId);
    return { error: { status, body }, frames };
  }
}

/** A minimal answer of each client protocol, which golden files show differences from. */
const PLAIN_REPLIES = Object.fromEntries(PROTOCOLS.map((client) => {
  const events: ReplyEvent[] = [
    { type: "start" },
    { type: "open", index: 0, block: { type: "text" } },
    { type: "delta", index: 0, text: "Hi" },
    { type: "close", index: 0 },
    { type: "finish", reason: "end", usage: {} },
  ];
  return [client, answerFor(client, events).reply ?? {}];
}));

/** An answer as differences: of the reply from a plain one, and of each frame from the expected frame. */
function describe(client: Protocol, { reply, error, frames }: ClientAnswer): JsonObject {
  const plain = PLAIN_REPLIES[client] ?? {};
  const whole = reply === undefined ? { error: error ?? null } : { reply: different(reply, plain) };
  return { ...whole, stream: frames.map((frame) => shorten(frame, reply ?? plain)) };
}

/** Members that differ; those that only the other object has are listed under "without". */
function different(object: JsonObject, other: JsonObject): JsonObject {
  const changed = Object.entries(object).flatMap(([name, value]): [string, Json][] => {
    const before = other[name];
    if (JSON.stringify(value) === JSON.stringify(before)) return [];
    return [[name, differentValue(value ?? null, before ?? null)]];
  });
  const without = Object.keys(other).filter((name) => object[name] === undefined);
  return { ...Object.fromEntries(changed), ...(without.length > 0 && { without }) };
}

function differentValue(value: Json, before: Json): Json {
  if (isObject(value) && isObject(before)) return different(value, before);
  const isPair = Array.isArray(value) && Array.isArray(before) && value.length === 1 && before.length === 1;
  const [one, other] = isPair ? [value[0], before[0]] : [];
  return isObject(one) && isObject(other) && one.type === other.type ? [different(one, other)] : value;
}

/** Shortens a frame; a value that the whole reply has too becomes its path, "$.usage". */
function shorten({ event, data }: Frame, reply: JsonObject): Json {
  const value = data.startsWith("{") ? parseJson(data) : null;
  if (!isObject(value)) return data;
  const { type, sequence_number: _, ...members } = value;
  if (event === undefined) return referTo(reply, shortenChunk(value, reply));
  if (type !== event) throw new Error(`Event "${event}" has the type "${type}"`);
  for (const name of ["response", "message"]) {
    const snapshot = members[name];
    if (isObject(snapshot)) members[name] = different(snapshot, reply);
  }
  return { [event]: referTo(reply, withoutRepeats(members, reply)) };
}

/** Leaves out the id of an item that the reply has at the same index, and empty `logprobs`. */
function withoutRepeats({ item_id: id, logprobs, ...members }: JsonObject, { output }: JsonObject): JsonObject {
  const item = Array.isArray(output) && typeof members.output_index === "number" ? output[members.output_index] : null;
  const isKnown = id === undefined || (isObject(item) && item.id === id);
  return {
    ...(!isKnown && { item_id: id }),
    ...members,
    ...(logprobs !== undefined && JSON.stringify(logprobs) !== "[]" && { logprobs }),
  };
}

/** Reduces a chat chunk of the usual shape to its delta, and any other to its differences from the reply. */
function shortenChunk(chunk: JsonObject, reply: JsonObject): JsonObject {
  const others = Object.entries(chunk).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(reply[name]));
  const { object, choices, usage, ...head } = Object.fromEntries(others);
  const [choice] = Array.isArray(choices) ? choices : [];
  const isChunk = object === "chat.completion.chunk" && Object.keys(head).length === 0;
  if (!isChunk || !isObject(choice)) return Object.fromEntries(others);
  const { delta = null, finish_reason: finish = null, ...place } = choice;
  const isUsual = usage === null && JSON.stringify(place) === '{"index":0,"logprobs":null}';
  if (!isUsual) return Object.fromEntries(others);
  return finish === null ? { delta } : { delta, finish_reason: finish };
}

/** Replaces larger values that the reply has too by their path in the reply. */
function referTo(reply: JsonObject, value: JsonObject): Json {
  const paths = new Map<string, string>();
  const collect = (part: Json | undefined, path: string) => {
    if (typeof part !== "object" || part === null) return;
    for (const [name, inner] of Object.entries(part) as [string, Json][]) {
      const at = Array.isArray(part) ? `${path}[${name}]` : `${path}.${name}`;
      const text = JSON.stringify(inner);
      if (typeof inner === "object" && text.length > 40 && !paths.has(text)) paths.set(text, at);
      collect(inner, at);
    }
  };
  collect(reply, "$");
  return parseJson(JSON.stringify(value, (_name, part) => paths.get(JSON.stringify(part)) ?? part));
}

/** The upstream's frames. A value equal to the previous frame's is left out, a larger repeated one is "as above". */
function describeInput(frames: readonly Frame[]): Json[] {
  let before: JsonObject = {};
  const seen = new Set<string>();
  return frames.map(({ event, data }) => {
    const value = data.startsWith("{") ? tryParse(data) : null;
    if (!isObject(value)) return data;
    const { type, sequence_number: _, obfuscation: __, ...members } = value;
    const changed = Object.entries(members).filter(([name, member]) =>
      JSON.stringify(member) !== JSON.stringify(before[name])
    ).map((
      [name, member],
    ) => [name, name === "response" ? differentValue(member ?? null, before[name] ?? null) : member]);
    before = { ...before, ...members };
    const shown = parseJson(JSON.stringify(Object.fromEntries(changed), (_name, part) => asAbove(part, seen)));
    const name = event ?? (typeof type === "string" ? type : undefined);
    return name === undefined ? shown : { [name]: shown };
  });
}

function asAbove(part: unknown, seen: Set<string>): unknown {
  if (!isObject(part)) return part;
  const text = JSON.stringify(part);
  if (text.length < 60) return part;
  if (seen.has(text)) return "as above";
  seen.add(text);
  return part;
}

function tryParse(data: string): Json {
  try {
    return parseJson(data);
  } catch {
    return null;
  }
}

/** Golden files by name: `<from>/<case>.json`, and `plain_replies.json`. */
export function answerFiles(): Map<string, string> {
  const files = new Map([["plain_replies.json", formatJson(PLAIN_REPLIES)]]);
  for (const [from, cases] of Object.entries(CASES) as [Protocol, Record<string, string>][]) {
    for (const [name, stream] of Object.entries(cases)) {
      const { frames } = recordedStream(from, stream);
      const events = readEvents({ protocol: from, frames });
      const clients = PROTOCOLS.filter((client) => client !== from);
      const described = clients.map((client) => [client, describe(client, answerFor(client, events))]);
      files.set(
        `${from}/${name}.json`,
        formatJson({ upstream: describeInput(frames), ...Object.fromEntries(described) }),
      );
    }
  }
  return files;
}
