/** Answers of the benchmark's upstream: prepared bytes in three protocols, whole or as a stream of events. */
import type { Protocol } from "./bodies.ts";

/** Text events of a stream that is sent at once, and of a paced stream. */
export const BURST_EVENTS = 200;
export const PACED_EVENTS = 100;
/** Time between two events of a paced and of a slow stream, in milliseconds. */
export const PACE_MS = 20;
export const SLOW_MS = 2_000;
/** Text events of a stream that pauses once, after its first events, and how long, in milliseconds. */
export const FIRST_EVENTS = 20;
export const FIRST_PAUSE_MS = 5;

/** Ways to answer: the first part of the path of an upstream request. */
export const PLAYS = ["json", "json60", "burst", "paced", "timed", "first", "slow"] as const;

/** Text of an event whose sending is timed; the upstream replaces the digits. */
export const TIME_MARK = "@0000000000000000@";

/** Wall-clock time in microseconds, with the precision of the monotonic clock; 16 digits. */
export function wallUs(): number {
  return Math.round((performance.timeOrigin + performance.now()) * 1000);
}

/** A way to answer. */
export type Play = (typeof PLAYS)[number];

/** Parts of a stream, each ready to be sent. */
export interface StreamParts {
  /** The head, and the events before the text. */
  opening: string;
  /** One event with text. */
  event: string;
  /** The events after the text, and the end. */
  closing: string;
}

const HEADERS = "server: bench\r\nx-request-id: req_0123456789abcdef\r\n";
const STREAM_HEAD =
  `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n${HEADERS}transfer-encoding: chunked\r\n\r\n`;
const LAST_CHUNK = "0\r\n\r\n";
const MODEL = "model-1";
const CREATED = 1_760_000_000;
const PROSE = "The folder is made after the file is opened, so the first call fails. Wait for it, and it works. ";

/** A whole answer with a text of this size in bytes. */
export function wholeAnswer(protocol: Protocol, bytes: number): string {
  const body = JSON.stringify(wholeBody(protocol, PROSE.repeat(Math.ceil(bytes / PROSE.length)).slice(0, bytes)));
  return `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n${HEADERS}content-length: ${body.length}\r\n\r\n${body}`;
}

function wholeBody(protocol: Protocol, text: string): unknown {
  switch (protocol) {
    case "chat":
      return {
        id: "chatcmpl-0123456789",
        object: "chat.completion",
        created: CREATED,
        model: MODEL,
        choices: [{
          index: 0,
          message: { role: "assistant", content: text, refusal: null },
          logprobs: null,
          finish_reason: "stop",
        }],
        usage: CHAT_USAGE,
        system_fingerprint: "fp_0123456789",
      };
    case "responses":
      return response("completed", [item(text, "completed")]);
    case "messages":
      return {
        id: "msg_0123456789",
        type: "message",
        role: "assistant",
        model: MODEL,
        content: [{ type: "text", text }],
        stop_reason: "end_turn",
        stop_sequence: null,
        usage: { input_tokens: 200, output_tokens: 150 },
      };
  }
}

const CHAT_USAGE = {
  prompt_tokens: 200,
  completion_tokens: 150,
  total_tokens: 350,
  prompt_tokens_details: { cached_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 0 },
};

/** A stream in a protocol, whose events have this text. */
export function streamParts(protocol: Protocol, text = " word"): StreamParts {
  switch (protocol) {
    case "chat":
      return chatStream(text);
    case "responses":
      return responsesStream(text);
    case "messages":
      return messagesStream(text);
  }
}

function chatStream(text: string): StreamParts {
  const event = (delta: unknown, finish: string | null = null) =>
    chunk(`data: ${
      JSON.stringify({
        id: "chatcmpl-0123456789",
        object: "chat.completion.chunk",
        created: CREATED,
        model: MODEL,
        system_fingerprint: "fp_0123456789",
        choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
        usage: null,
      })
    }\n\n`);
  const usage = {
    id: "chatcmpl-0123456789",
    object: "chat.completion.chunk",
    created: CREATED,
    model: MODEL,
    choices: [],
    usage: CHAT_USAGE,
  };
  return {
    opening: STREAM_HEAD + event({ role: "assistant", content: "" }),
    event: event({ content: text }),
    closing: event({}, "stop") + chunk(`data: ${JSON.stringify(usage)}\n\n`) + chunk("data: [DONE]\n\n") + LAST_CHUNK,
  };
}

function messagesStream(text: string): StreamParts {
  const event = (type: string, rest: object) => chunk(`event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`);
  const message = {
    id: "msg_0123456789",
    type: "message",
    role: "assistant",
    model: MODEL,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 200, output_tokens: 1 },
  };
  return {
    opening: STREAM_HEAD + event("message_start", { message }) +
      event("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
    event: event("content_block_delta", { index: 0, delta: { type: "text_delta", text } }),
    closing: event("content_block_stop", { index: 0 }) +
      event("message_delta", {
        delta: { stop_reason: "end_turn", stop_sequence: null },
        usage: { output_tokens: 150 },
      }) +
      event("message_stop", {}) + LAST_CHUNK,
  };
}

function responsesStream(word: string): StreamParts {
  let number = 0;
  const event = (type: string, rest: object) =>
    chunk(`event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: number++, ...rest })}\n\n`);
  const place = { item_id: "msg_0123456789", output_index: 0, content_index: 0 };
  const part = (text: string) => ({ type: "output_text", text, annotations: [] });
  const opening = STREAM_HEAD + event("response.created", { response: response("in_progress", []) }) +
    event("response.in_progress", { response: response("in_progress", []) }) +
    event("response.output_item.added", { output_index: 0, item: { ...item("", "in_progress"), content: [] } }) +
    event("response.content_part.added", { ...place, part: part("") });
  const delta = event("response.output_text.delta", { ...place, delta: word, logprobs: [] });
  const text = word.repeat(20);
  return {
    opening,
    event: delta,
    closing: event("response.output_text.done", { ...place, text, logprobs: [] }) +
      event("response.content_part.done", { ...place, part: part(text) }) +
      event("response.output_item.done", { output_index: 0, item: item(text, "completed") }) +
      event("response.completed", { response: response("completed", [item(text, "completed")]) }) + LAST_CHUNK,
  };
}

function item(text: string, status: string): object {
  return {
    id: "msg_0123456789",
    type: "message",
    status,
    role: "assistant",
    content: [{ type: "output_text", text, annotations: [] }],
  };
}

function response(status: string, output: readonly unknown[]): object {
  return {
    id: "resp_0123456789",
    object: "response",
    created_at: CREATED,
    status,
    error: null,
    incomplete_details: null,
    instructions: null,
    max_output_tokens: 1024,
    model: MODEL,
    output,
    parallel_tool_calls: true,
    previous_response_id: null,
    reasoning: { effort: null, summary: null },
    store: false,
    temperature: 0.7,
    text: { format: { type: "text" } },
    tool_choice: "auto",
    tools: [],
    top_p: 1,
    truncation: "disabled",
    usage: status === "completed"
      ? {
        input_tokens: 200,
        input_tokens_details: { cached_tokens: 0 },
        output_tokens: 150,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: 350,
      }
      : null,
    metadata: {},
  };
}

/** All texts are ASCII, so that characters are bytes. */
function chunk(text: string): string {
  return `${text.length.toString(16)}\r\n${text}\r\n`;
}
