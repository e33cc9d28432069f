/** Answers of upstreams, crossed to what clients get: streamed and whole. */
import { fold } from "../../lib/protocols/canonical/fold.ts";
import type { Event, Protocol } from "../../lib/protocols/canonical/types.ts";
import { GatewayError } from "../../lib/errors.ts";
import { isObject, type Json, type JsonObject, parseJson } from "../../lib/json/json.ts";
import type { Frame } from "../../lib/protocols/codec.ts";
import type { UpstreamProtocol } from "../../lib/protocols/upstream_codec.ts";
import { CLIENTS, echoOf, PROTOCOLS } from "./crossings.ts";
import { eventsOf, recorded } from "./recorded.ts";
import { spellJson } from "./spell.ts";

/** Streams by what they show: the name of the golden file, and the recorded stream's. */
const CASES: Readonly<Record<UpstreamProtocol, Readonly<Record<string, string>>>> = {
  chat: {
    text: "text as OpenAI streams it",
    refusal_silent: "nothing at all, ended in good order",
    parallel_tools: "text, then parallel calls one after the other",
    interleaved_tools: "interleaved parallel calls",
    text_after_tools: "content after calls is a text of its own",
    blank_arguments: "no arguments, or blank ones",
    custom_tools: "custom tools",
    reasoning_unsigned: "reasoning_content as DeepSeek streams it",
    reasoning_signed: "signed text as OpenRouter streams it",
    reasoning_hidden: "signed text, redacted text and omitted text",
    reasoning_summary: "a summary and its encrypted half",
    refusal: "refusal",
    content_filter: "content filter",
    length: "length",
    length_in_call: "a call cut short by the length",
    stop_sequence: "the stop string, where vLLM names it",
    citations: "annotations become citations",
    usage_on_any_chunk: "the last usage counts, on whatever chunk",
    no_usage: "no id, no usage",
    error_first: "an error first",
    error_middle: "an error in the middle, with choices",
    cut: "cut in the text",
  },
  responses: {
    text: "text",
    parallel_tools: "parallel_calls",
    interleaved_tools: "interleaved_calls",
    text_after_tools: "text_call_text",
    blank_arguments: "call_without_arguments",
    custom_tools: "custom_call",
    reasoning_signed: "reasoning",
    reasoning_hidden: "hidden_reasoning",
    reasoning_unsigned: "raw_reasoning",
    refusal: "refusal",
    content_filter: "content_filter",
    length: "length",
    length_in_call: "length_in_call",
    citations: "hosted_search",
    no_ids: "without_ids",
    error_first: "error_first",
    error_middle: "error_nested",
    cut: "cut",
  },
  messages: {
    text: "text",
    parallel_tools: "tools",
    interleaved_tools: "interleaved_blocks",
    reasoning_signed: "thinking",
    reasoning_hidden: "hidden_thinking",
    reasoning_unsigned: "unsigned_thinking",
    reasoning_between_tools: "interleaved_thinking",
    refusal: "refusal",
    refusal_silent: "refusal_silent",
    length: "length",
    context_full: "context_full",
    stop_sequence: "stop_sequence",
    citations: "server_tools",
    pause: "pause",
    usage_of_every_class: "cached",
    usage_in_pieces: "two_message_deltas",
    error_first: "error_first",
    error_middle: "error_middle",
    cut: "cut",
  },
  gemini: {
    text: "text",
    empty: "nothing",
    parallel_tools: "calls_parallel",
    reasoning_signed: "thoughts_signed",
    reasoning_hidden: "thoughts_hidden",
    reasoning_then_tools: "thoughts_text_call",
    length: "length",
    refusal: "safety",
    prompt_blocked: "prompt_blocked",
    usage_of_every_class: "usage",
    other_parts: "other_parts",
    error_first: "error_first",
    error_middle: "error_in_the_middle",
    cut: "error_cut",
  },
};

/** What a client gets: the whole answer or the error in its place, and the frames of the stream. */
function goldenOf(events: readonly Event[], client: Protocol): JsonObject {
  const echo = echoOf(client);
  const codec = CLIENTS[client];
  const writer = codec.writer(echo);
  const frames = [...events.flatMap((event) => writer.push(event)), ...writer.end()];
  let whole: JsonObject;
  try {
    whole = { reply: codec.writeReply(fold(events), echo) };
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    const { status, body } = codec.writeError(error, echo.requestId);
    whole = { error: { status, body } };
  }
  const reply = isObject(whole.reply) ? whole.reply : {};
  return { ...whole, stream: frames.map((frame) => shorten(frame, reply)) };
}

/** A frame as one line: what only repeats the whole answer, or the event's name, is left out. */
function shorten({ event, data }: Frame, reply: JsonObject): Json {
  const value = data.startsWith("{") ? parseJson(data) : null;
  if (!isObject(value)) return data;
  const { type, sequence_number: _, ...members } = value;
  if (event !== undefined) {
    if (type !== event) throw new Error(`Event "${event}" has the type "${type}"`);
    if (isObject(members.response)) members.response = different(members.response, reply);
    return { [event]: members };
  }
  return different(value, { ...reply, choices: [], usage: {}, object: "chat.completion.chunk" });
}

function different(object: JsonObject, other: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(object).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(other[name])),
  );
}

/** Golden files by name: `<case>.<from>-<to>.json`, from the upstream's protocol to the client's. */
export function answerFiles(): Map<string, string> {
  const files = new Map<string, string>();
  for (const [from, cases] of Object.entries(CASES) as [UpstreamProtocol, Record<string, string>][]) {
    for (const [name, stream] of Object.entries(cases)) {
      const events = eventsOf(recorded(from, stream));
      for (const to of PROTOCOLS) files.set(`${name}.${from}-${to}.json`, spellJson(goldenOf(events, to)));
    }
  }
  return files;
}
