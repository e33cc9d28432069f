/** Short real answers of each protocol, for tests whose subject is not the text. */
import type { Protocol } from "../../lib/protocols/canonical/types.ts";
import type { Json, JsonObject } from "../../lib/json/mod.ts";

/** All protocols, of clients and of upstreams. */
export const PROTOCOLS = ["chat", "responses", "messages", "gemini"] as const satisfies readonly Protocol[];

/** A prompt of one text. */
export function prompt(protocol: Protocol, more: JsonObject = {}, text = "Hello"): JsonObject {
  const base: JsonObject = { model: "acme/one" };
  if (protocol === "responses") return { ...base, input: text, ...more };
  if (protocol === "gemini") return { ...base, contents: [{ role: "user", parts: [{ text }] }], ...more };
  const messages = [{ role: "user", content: text }];
  return protocol === "chat" ? { ...base, messages, ...more } : { ...base, max_tokens: 100, messages, ...more };
}

/** The invalid member that an error names. */
export function paramIn(protocol: Protocol, { error }: { error: JsonObject }): Json | undefined {
  if (protocol !== "gemini") return error.param;
  const fields = (error.details as { fieldViolations?: { field: string }[] }[] | undefined) ?? [];
  return fields.flatMap(({ fieldViolations = [] }) => fieldViolations)[0]?.field;
}

/** Members that limit the answer to a request; `null` names no limit. */
export function limitedTo(protocol: Protocol, tokens: number | null): JsonObject {
  switch (protocol) {
    case "chat":
      return { max_completion_tokens: tokens };
    case "responses":
      return { max_output_tokens: tokens };
    case "messages":
      return { max_tokens: tokens };
    case "gemini":
      return { generationConfig: { maxOutputTokens: tokens } };
  }
}

/** A whole answer with the text "Hello there". */
export const WHOLE: Readonly<Record<Protocol, JsonObject>> = {
  chat: {
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1,
    model: "real-one",
    choices: [{ index: 0, message: { role: "assistant", content: "Hello there" }, finish_reason: "stop" }],
    usage: { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 },
  },
  responses: {
    id: "resp_1",
    object: "response",
    created_at: 1,
    status: "completed",
    model: "real-one",
    output: [{
      id: "msg_1",
      type: "message",
      role: "assistant",
      status: "completed",
      content: [{ type: "output_text", text: "Hello there", annotations: [] }],
    }],
    usage: { input_tokens: 7, output_tokens: 2, total_tokens: 9 },
  },
  messages: {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "real-one",
    content: [{ type: "text", text: "Hello there" }],
    stop_reason: "end_turn",
    stop_sequence: null,
    usage: { input_tokens: 7, output_tokens: 2 },
  },
  gemini: {
    candidates: [{ content: { parts: [{ text: "Hello there" }], role: "model" }, finishReason: "STOP", index: 0 }],
    usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 2, totalTokenCount: 9 },
    modelVersion: "real-one",
    responseId: "r1",
  },
};

function chatFrames(): string[] {
  const chunk = (choices: string, usage = "null") =>
    `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"real-one","choices":${choices},` +
    `"usage":${usage}}\n\n`;
  return [
    chunk('[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]'),
    chunk('[{"index":0,"delta":{"content":"Hello"},"finish_reason":null}]'),
    chunk('[{"index":0,"delta":{"content":" th\\u00e9re 🙂"},"finish_reason":null}]'),
    chunk('[{"index":0,"delta":{},"finish_reason":"stop"}]'),
    chunk("[]", '{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}'),
    "data: [DONE]\n\n",
  ];
}

function responsesFrames(): string[] {
  const item = (text: string, status: string) =>
    `{"id":"msg_1","type":"message","role":"assistant","status":"${status}","content":[${
      text === "" ? "" : `{"type":"output_text","text":"${text}","annotations":[]}`
    }]}`;
  const response = (status: string, output: string, usage: string) =>
    `{"id":"resp_1","object":"response","created_at":1,"status":"${status}","model":"real-one","output":[${output}],` +
    `"usage":${usage}}`;
  const content = "Hello th\\u00e9re 🙂";
  const bodies: [string, string][] = [
    ["response.created", `"response":${response("in_progress", "", "null")}`],
    ["response.in_progress", `"response":${response("in_progress", "", "null")}`],
    ["response.output_item.added", `"output_index":0,"item":${item("", "in_progress")}`],
    [
      "response.content_part.added",
      '"item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}',
    ],
    ["response.output_text.delta", `"item_id":"msg_1","output_index":0,"content_index":0,"delta":"Hello"`],
    ["response.output_text.delta", `"item_id":"msg_1","output_index":0,"content_index":0,"delta":" th\\u00e9re 🙂"`],
    ["response.output_text.done", `"item_id":"msg_1","output_index":0,"content_index":0,"text":"${content}"`],
    [
      "response.content_part.done",
      `"item_id":"msg_1","output_index":0,"content_index":0,` +
      `"part":{"type":"output_text","text":"${content}","annotations":[]}`,
    ],
    ["response.output_item.done", `"output_index":0,"item":${item(content, "completed")}`],
    [
      "response.completed",
      `"response":${
        response("completed", item(content, "completed"), '{"input_tokens":7,"output_tokens":2,"total_tokens":9}')
      }`,
    ],
  ];
  return bodies.map(([type, members], index) =>
    `event: ${type}\ndata: {"type":"${type}","sequence_number":${index},${members}}\n\n`
  );
}

function messagesFrames(): string[] {
  const bodies: [string, string][] = [
    [
      "message_start",
      `"message":{"id":"msg_1","type":"message","role":"assistant","model":"real-one","content":[],` +
      `"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":1}}`,
    ],
    ["content_block_start", `"index":0,"content_block":{"type":"text","text":""}`],
    ["ping", ""],
    ["content_block_delta", `"index":0,"delta":{"type":"text_delta","text":"Hello"}`],
    ["content_block_delta", `"index":0,"delta":{"type":"text_delta","text":" th\\u00e9re 🙂"}`],
    ["content_block_stop", `"index":0`],
    ["message_delta", `"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":2}`],
    ["message_stop", ""],
  ];
  return bodies.map(([type, members]) =>
    `event: ${type}\ndata: {"type":"${type}"${members === "" ? "" : `, ${members}`}}\n\n`
  );
}

function geminiFrames(): string[] {
  const piece = (text: string, end = "", usage = "") =>
    `data: {"candidates":[{"content":{"parts":[{"text":"${text}"}],"role":"model"}${end},"index":0}]${usage},` +
    `"modelVersion":"real-one","responseId":"r1"}\n\n`;
  return [
    piece("Hello"),
    piece(" th\\u00e9re 🙂"),
    piece(
      "",
      ',"finishReason":"STOP"',
      ',"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":2,"totalTokenCount":9}',
    ),
  ];
}

/** The frames of a streamed answer with the text "Hello thére 🙂", as bytes on the wire. */
export const STREAMED: Readonly<Record<Protocol, readonly string[]>> = {
  chat: chatFrames(),
  responses: responsesFrames(),
  messages: messagesFrames(),
  gemini: geminiFrames(),
};

/** Texts that only a complete stream contains. */
export const SUCCESS: Readonly<Record<Protocol, string>> = {
  chat: "[DONE]",
  responses: "response.completed",
  messages: "message_stop",
  gemini: '"finishReason":"STOP"',
};

/** Google's names of errors, by those of the others. */
const STATUSES: Readonly<Record<string, string>> = {
  rate_limit_error: "RESOURCE_EXHAUSTED",
  overloaded_error: "UNAVAILABLE",
};

/** A protocol's error in its vendor's format. */
export function errorBody(protocol: Protocol, message: string, type = "server_error"): JsonObject {
  if (protocol === "gemini") {
    const status = STATUSES[type];
    return { error: { message, ...(status !== undefined && { status }) } };
  }
  return protocol === "messages"
    ? { type: "error", error: { type, message } }
    : { error: { message, type, param: null, code: null } };
}

/** A protocol's error as a frame. */
export function errorFrame(protocol: Protocol, message: string, type = "server_error"): string {
  switch (protocol) {
    case "chat":
    case "gemini":
      return `data: ${JSON.stringify(errorBody(protocol, message, type))}\n\n`;
    case "messages":
      return `event: error\ndata: ${JSON.stringify(errorBody(protocol, message, type))}\n\n`;
    case "responses":
      return `event: error\ndata: ${
        JSON.stringify({ type: "error", sequence_number: 1, code: type, message, param: null })
      }\n\n`;
  }
}
