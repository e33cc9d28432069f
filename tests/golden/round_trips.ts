/** Round trips of answers: to a client and back. */
import { aggregateEvents } from "../../lib/protocols/canonical/aggregate_events.ts";
import type {
  ContentBlock,
  FinishReason,
  Prompt,
  Protocol,
  Reply,
  ReplyEvent,
  Signature,
  TokenUsage,
  UsageClass,
} from "../../lib/protocols/canonical/types.ts";
import { isObject, type Json, type JsonObject, parseJson } from "../../lib/json/mod.ts";
import type { Frame } from "../../lib/protocols/codec.ts";
import { checkBody } from "../../lib/protocols/fields.ts";
import { UPSTREAM_CODECS } from "../../lib/upstreams/protocols.ts";
import { CLIENTS, responseContextOf } from "./crossings.ts";

/** Writes events as frames for a client. */
export function writeFrames(events: readonly ReplyEvent[], client: Protocol, request?: JsonObject): Frame[] {
  const writer = CLIENTS[client].writer(responseContextOf(client, request));
  return [...events.flatMap((event) => writer.push(event)), ...writer.end()];
}

/** Reads a client's stream with the upstream's reader of the same protocol. */
export function readBack(frames: readonly Frame[], client: Protocol): ReplyEvent[] {
  const reader = UPSTREAM_CODECS[client].reader({ issuer: "gateway" });
  return [...frames.flatMap((frame) => reader.push(frame)), ...reader.end()];
}

/** Protocols without refusals and custom tools: refusals are text, and free-form input is wrapped into an object. */
const MERGING: ReadonlySet<Protocol> = new Set(["messages", "gemini"]);

/** The content of an answer in an order that every protocol has. */
export interface ReplySummary {
  text: string;
  refusal: string;
  thoughts: string[];
  calls: { id: string; name: string; arguments: string; custom: boolean }[];
  finish: FinishReason;
  usage: { input: number; cached: number; output: number; reasoning: number };
}

/** Summarizes an answer as far as a client's protocol can represent it. */
export function summarizeReply({ blocks, finish, usage }: Reply, client: Protocol): ReplySummary {
  const texts = (type: "text" | "refusal" | "reasoning") =>
    blocks.flatMap((block) => block.type === type ? [block.text] : []).filter((text) => text !== "");
  // Messages and Gemini mark a refusal by the reason only; its content is text.
  const merged = MERGING.has(client);
  const calls = blocks.flatMap((block) => block.type === "tool_call" ? [callOf(block, client)] : []);
  const text = blocks.flatMap((block) =>
    block.type === "text" || (merged && block.type === "refusal") ? [block.text] : []
  )
    .join("");
  return {
    // In chat, some servers write white space for no content.
    text: client === "chat" && text.trim() === "" ? "" : text,
    refusal: merged ? "" : texts("refusal").join(""),
    // Chat joins reasoning with blank lines, Gemini without.
    thoughts: client === "chat" || client === "gemini"
      ? [texts("reasoning").join("").replaceAll("\n", "")]
      : texts("reasoning"),
    calls,
    finish: finishFor({ blocks, finish }, client),
    usage: totals(usage),
  };
}

/** Messages wrap free-form input into an object. Arguments are compared as values. */
function callOf(
  { id, name, arguments: text, custom }: Extract<ContentBlock, { type: "tool_call" }>,
  client: Protocol,
): ReplySummary["calls"][number] {
  const wrapped = custom === true && MERGING.has(client);
  const value = wrapped ? JSON.stringify({ input: text }) : text;
  return {
    id,
    name,
    arguments: spelled(client === "gemini" ? objectText(value) : value),
    custom: custom === true && !wrapped,
  };
}

/** Gemini has arguments as objects only, also in streams. */
function objectText(text: string): string {
  try {
    if (isObject(parseJson(text))) return text;
  } catch {
    // Incomplete arguments.
  }
  return JSON.stringify({ _raw: text });
}

/** Normalizes JSON text; other text stays. */
function spelled(text: string): string {
  try {
    return JSON.stringify(parseJson(text));
  } catch {
    return text;
  }
}

function finishFor({ blocks, finish }: Pick<Reply, "blocks" | "finish">, client: Protocol): FinishReason {
  const refused = blocks.some((block) => block.type === "refusal" && block.text !== "");
  // A refusal is text here, marked by the reason only.
  const marked = finish === "end" && refused ? "refusal" : finish;
  if (client === "messages") return marked;
  if (client === "gemini") return marked === "stop_sequence" || marked === "pause" ? "end" : marked;
  if (finish === "stop_sequence" || finish === "pause") return "end";
  return client === "responses" && finish === "refusal" && refused ? "end" : finish;
}

function totals(usage: TokenUsage): ReplySummary["usage"] {
  const of = (...names: UsageClass[]) => names.reduce((sum, name) => sum + (usage[name] ?? 0), 0);
  return {
    input: of("prompt", "input_cache_read", "input_cache_write_5m", "input_cache_write_1h"),
    cached: of("input_cache_read"),
    output: of("completion"),
    reasoning: of("reasoning"),
  };
}

/** Returns the next prompt of a client that sends an answer back. */
export function replay(reply: Reply, client: Protocol): Prompt {
  const codec = CLIENTS[client];
  const request = nextRequest(codec.writeReply(reply, responseContextOf(client)), client);
  checkBody(codec.schema, request);
  return codec.readPrompt(request);
}

/** Returns the assistant message that a client sends back, as the prompt reader reads it. */
export function replayBlocks(reply: Reply, client: Protocol): ContentBlock[] {
  return replay(reply, client).messages.filter(({ role }) => role === "assistant").flatMap(({ blocks }) => blocks);
}

function nextRequest(answer: JsonObject, client: Protocol): JsonObject {
  const user = { role: "user", content: "On" };
  switch (client) {
    case "chat":
      return { model: "acme/thinker", messages: [user, firstMessage(answer), user] };
    case "responses":
      return { model: "acme/thinker", input: [user, ...list(answer.output), user] };
    case "messages": {
      const turn = list(answer.content).length > 0 ? [{ role: "assistant", content: answer.content }] : [];
      return { model: "acme/thinker", max_tokens: 9, messages: [user, ...turn, user] };
    }
    case "gemini": {
      const message = { role: "user", parts: [{ text: "On" }] };
      const turns = list(answer.candidates).flatMap((candidate) =>
        isObject(candidate) ? [candidate.content ?? null] : []
      );
      return { model: "acme/thinker", contents: [message, ...turns, message] };
    }
  }
}

function firstMessage({ choices }: JsonObject): Json {
  const [choice] = list(choices);
  return isObject(choice) ? choice.message ?? null : null;
}

/** Returns signatures without ids, which only one protocol has. */
export function signatures(blocks: readonly ContentBlock[]): Pick<Signature, "issuer" | "value">[] {
  return blocks.flatMap((block) =>
    block.type === "reasoning" && block.signature !== undefined
      ? [{ issuer: block.signature.issuer, value: block.signature.value }]
      : []
  );
}

/** Returns the reply of events; undefined if they end with an error. */
export function replyOf(events: readonly ReplyEvent[]): Reply | undefined {
  return events.at(-1)?.type === "error" ? undefined : aggregateEvents(events);
}

function list(value: Json | undefined): Json[] {
  return Array.isArray(value) ? value : [];
}
