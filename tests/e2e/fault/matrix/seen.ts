/** Classifies what a client received by the rules of its protocol. */
import { assert, assertEquals } from "@std/assert";
import type { Protocol } from "../../../../lib/protocols/canonical/types.ts";
import { SseReader } from "../../../../lib/server/sse.ts";
import { anthropicErrorSchema, googleErrorSchema, openaiErrorSchema } from "../../../../lib/openapi/schemas.ts";
import type { Seen } from "./fault.ts";
import { TEXT } from "./sound_answer.ts";

/** An answer as a client got it. */
export interface Got {
  status: number;
  headers: Headers;
  text: string;
}

// deno-lint-ignore no-explicit-any
type Parsed = any;

/** The end of an answer. */
export interface End {
  seen: Seen;
  /** Text of the answer or of the part that arrived. */
  words: string;
}

/** Returns the end of an answer. @throws {AssertionError} if it is nothing that a client of this protocol may see */
export function endOf(got: Got, { protocol, stream }: { protocol: Protocol; stream: boolean }): End {
  const { status, headers, text } = got;
  assert(/^req_[a-z0-9]+$/.test(headers.get("x-request-id") ?? ""), "no request id");
  assert(!/127\.0\.0\.1|localhost|upstream-key/.test(text), "it tells what is not for clients");
  if (status !== 200) {
    assertErrorBody(protocol, JSON.parse(text));
    return { seen: status, words: "" };
  }
  if (!stream) return { seen: "answer", words: wordsOfWhole(protocol, JSON.parse(text)) };
  const frames = readFrames(text);
  assert(text.endsWith("\n\n"), "the last event has no end");
  const isSuccess = isEnded(protocol, frames);
  const [failure, ...others] = frames.filter((frame) => isFailure(protocol, frame));
  const words = wordsOfStream(protocol, frames);
  if (failure === undefined) {
    assert(isSuccess, "the stream ends without a word");
    return { seen: "answer", words };
  }
  assertEquals(others, [], "there are several errors");
  assert(!isSuccess, "an error, and a success");
  assertErrorEvent(protocol, failure);
  return { seen: "error within", words };
}

/** Classifies an outcome. @throws {AssertionError} for outcomes or text that no client may see */
export function seenOf(
  got: Got,
  { endless, ...request }: { protocol: Protocol; stream: boolean; endless: boolean },
): Seen {
  const { seen, words } = endOf(got, request);
  assert(!got.text.includes("EVIL"), "the answer of somebody else");
  if (seen === "answer") assertEquals(words, TEXT);
  else assert(endless || TEXT.startsWith(words), "text that nobody said");
  return seen;
}

/** Texts that only a complete stream contains. Answers cut by a token limit count as complete. */
const SUCCESSES = {
  messages: ["message_stop"],
  responses: ["response.completed", "response.incomplete"],
} as const;

function isEnded(protocol: Protocol, frames: readonly ParsedFrame[]): boolean {
  switch (protocol) {
    case "chat":
      return frames.some(({ data }) => data === "[DONE]");
    case "gemini":
      return frames.some(({ data }) => typeof data.candidates?.[0]?.finishReason === "string");
    default:
      return hasEvent(frames, ...SUCCESSES[protocol]);
  }
}

function assertErrorBody(protocol: Protocol, body: Parsed): void {
  const schemas = { messages: anthropicErrorSchema, gemini: googleErrorSchema };
  const schema = protocol === "messages" || protocol === "gemini" ? schemas[protocol] : openaiErrorSchema;
  const { error } = schema.safeParse(body);
  assert(error === undefined, `the error is of another shape: ${error?.message}`);
}

function assertErrorEvent(protocol: Protocol, { event, data }: ParsedFrame): void {
  switch (protocol) {
    case "chat":
    case "gemini":
      return assertErrorBody(protocol, { error: data.error });
    case "messages":
      assertEquals([event, data.type, typeof data.error.type, typeof data.error.message], [
        "error",
        "error",
        "string",
        "string",
      ]);
      return;
    case "responses":
      assertEquals([event, data.type], ["response.failed", "response.failed"]);
      assertEquals([data.response.status, typeof data.response.error.code, typeof data.response.error.message], [
        "failed",
        "string",
        "string",
      ]);
  }
}

interface ParsedFrame {
  event: string | undefined;
  data: Parsed;
}

function readFrames(text: string): ParsedFrame[] {
  const reader = new SseReader();
  return [...reader.push(text), ...reader.end()].map(({ event, data }) => ({
    event,
    data: data === "[DONE]" ? data : JSON.parse(data),
  }));
}

/** Clients of responses get an `error` event just before, too. */
function isFailure(protocol: Protocol, { data }: ParsedFrame): boolean {
  if (protocol === "chat" || protocol === "gemini") return (data.error ?? undefined) !== undefined;
  return data.type === (protocol === "messages" ? "error" : "response.failed");
}

function hasEvent(frames: readonly ParsedFrame[], ...types: readonly string[]): boolean {
  return frames.some(({ event, data }) => types.includes(event ?? "") || types.includes(data.type));
}

/** Answers of other upstreams are relayed unchanged, and members without text add no words. */
function wordsOfStream(protocol: Protocol, frames: readonly ParsedFrame[]): string {
  return frames.map(({ data }) => {
    if (protocol === "chat") return wordOf(data.choices?.[0]?.delta?.content);
    if (protocol === "gemini") return wordOf(data.candidates?.[0]?.content?.parts?.[0]?.text);
    if (protocol === "responses") return data.type === "response.output_text.delta" ? wordOf(data.delta) : "";
    return data.type === "content_block_delta" ? wordOf(data.delta?.text) : "";
  }).join("");
}

function wordsOfWhole(protocol: Protocol, body: Parsed): string {
  if (protocol === "chat") return wordOf(body.choices?.[0]?.message?.content);
  if (protocol === "gemini") return wordOf(body.candidates?.[0]?.content?.parts?.[0]?.text);
  return wordOf(protocol === "messages" ? body.content?.[0]?.text : body.output?.[0]?.content?.[0]?.text);
}

function wordOf(value: Parsed): string {
  return typeof value === "string" ? value : "";
}
