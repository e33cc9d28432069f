/** Answers of real upstreams in each protocol, built from pieces of text and a usage. */
import type { Protocol } from "../../lib/protocols/canonical/types.ts";
import type { JsonObject } from "../../lib/json/mod.ts";

/** The reported usage: token counts, counts with reasoning, none at all, impossible numbers, or zeros. */
export type ReportedUsage = "reported" | "reasoned" | "missing" | "absurd" | "zeros";

/** The counts of `reported`, in the classes of the bill. */
export const REPORTED = { prompt: 7, input_cache_read: 4, completion: 5 };

/** The counts of `reasoned`: most of the output was never shown. */
export const REASONED = { ...REPORTED, completion: 20_005, reasoning: 20_000 };

/** A streamed answer in three parts: frames before the text, a frame for each piece, frames that end it. */
export interface Frames {
  opening: string[];
  pieces: string[];
  ending: string[];
}

const USAGE: Readonly<Record<Protocol, Readonly<Record<ReportedUsage, JsonObject | undefined>>>> = {
  chat: {
    reported: {
      prompt_tokens: 11,
      completion_tokens: 5,
      total_tokens: 16,
      prompt_tokens_details: { cached_tokens: 4 },
    },
    reasoned: {
      prompt_tokens: 11,
      completion_tokens: 20_005,
      total_tokens: 20_016,
      prompt_tokens_details: { cached_tokens: 4 },
      completion_tokens_details: { reasoning_tokens: 20_000 },
    },
    missing: undefined,
    absurd: { prompt_tokens: -3, completion_tokens: 5e15, total_tokens: 1 },
    zeros: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
  },
  responses: {
    reported: { input_tokens: 11, input_tokens_details: { cached_tokens: 4 }, output_tokens: 5, total_tokens: 16 },
    reasoned: {
      input_tokens: 11,
      input_tokens_details: { cached_tokens: 4 },
      output_tokens: 20_005,
      output_tokens_details: { reasoning_tokens: 20_000 },
      total_tokens: 20_016,
    },
    missing: undefined,
    absurd: { input_tokens: -3, output_tokens: 5e15, total_tokens: 1 },
    zeros: { input_tokens: 0, output_tokens: 0, total_tokens: 0 },
  },
  messages: {
    reported: { input_tokens: 7, cache_read_input_tokens: 4, output_tokens: 5 },
    reasoned: {
      input_tokens: 7,
      cache_read_input_tokens: 4,
      output_tokens: 20_005,
      output_tokens_details: { thinking_tokens: 20_000 },
    },
    missing: undefined,
    absurd: { input_tokens: -3, output_tokens: 5e15 },
    zeros: { input_tokens: 0, output_tokens: 0 },
  },
  gemini: {
    reported: { promptTokenCount: 11, cachedContentTokenCount: 4, candidatesTokenCount: 5, totalTokenCount: 16 },
    reasoned: {
      promptTokenCount: 11,
      cachedContentTokenCount: 4,
      candidatesTokenCount: 5,
      thoughtsTokenCount: 20_000,
      totalTokenCount: 20_016,
    },
    missing: undefined,
    absurd: { promptTokenCount: -3, candidatesTokenCount: 5e15, totalTokenCount: 1 },
    zeros: { promptTokenCount: 0, candidatesTokenCount: 0, totalTokenCount: 0 },
  },
};

/** A whole answer with this text. */
export function whole(protocol: Protocol, text: string, reported: ReportedUsage): string {
  const usage = USAGE[protocol][reported];
  const rest = usage === undefined ? {} : { usage };
  switch (protocol) {
    case "chat":
      return JSON.stringify({
        id: "chatcmpl-1",
        object: "chat.completion",
        created: 1,
        model: "real-one",
        choices: [{ index: 0, message: { role: "assistant", content: text }, finish_reason: "stop" }],
        ...rest,
      });
    case "responses":
      return JSON.stringify(response(text, "completed", rest));
    case "messages":
      return JSON.stringify({ ...message([{ type: "text", text }], "end_turn"), ...rest });
    case "gemini":
      return JSON.stringify(piece(text, "STOP", usage));
  }
}

/** A streamed answer with these pieces of text. */
export function frames(protocol: Protocol, pieces: readonly string[], reported: ReportedUsage): Frames {
  const usage = USAGE[protocol][reported];
  switch (protocol) {
    case "chat":
      return chatFrames(pieces, usage);
    case "responses":
      return responsesFrames(pieces, usage);
    case "messages":
      return messagesFrames(pieces, usage);
    case "gemini":
      return {
        opening: [],
        pieces: pieces.map((text) => `data: ${JSON.stringify(piece(text))}\n\n`),
        ending: [`data: ${JSON.stringify(piece("", "STOP", usage))}\n\n`],
      };
  }
}

function piece(text: string, finishReason?: string, usageMetadata?: JsonObject): JsonObject {
  return {
    candidates: [{
      content: { parts: [{ text }], role: "model" },
      index: 0,
      ...(finishReason !== undefined && { finishReason }),
    }],
    ...(usageMetadata !== undefined && { usageMetadata }),
    modelVersion: "real-one",
    responseId: "r1",
  };
}

function chatFrames(pieces: readonly string[], usage: JsonObject | undefined): Frames {
  const chunk = (choices: JsonObject[], more: JsonObject = {}) =>
    `data: ${
      JSON.stringify({
        id: "chatcmpl-1",
        object: "chat.completion.chunk",
        created: 1,
        model: "real-one",
        choices,
        ...more,
      })
    }\n\n`;
  const delta = (delta: JsonObject, finish_reason: string | null = null) => chunk([{ index: 0, delta, finish_reason }]);
  return {
    opening: [delta({ role: "assistant", content: "" })],
    pieces: pieces.map((content) => delta({ content })),
    ending: [delta({}, "stop"), ...(usage === undefined ? [] : [chunk([], { usage })]), "data: [DONE]\n\n"],
  };
}

function responsesFrames(pieces: readonly string[], usage: JsonObject | undefined): Frames {
  let number = 0;
  const frame = (type: string, members: JsonObject) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: number++, ...members })}\n\n`;
  const text = pieces.join("");
  const part = { type: "output_text", text, annotations: [] };
  const at = { item_id: "msg_1", output_index: 0, content_index: 0 };
  const { output, ...empty } = response("", "in_progress", {});
  const [item] = output as JsonObject[];
  return {
    opening: [
      frame("response.created", { response: { ...empty, output: [] } }),
      frame("response.output_item.added", { output_index: 0, item: { ...item, status: "in_progress", content: [] } }),
      frame("response.content_part.added", { ...at, part: { ...part, text: "" } }),
    ],
    pieces: pieces.map((delta) => frame("response.output_text.delta", { ...at, delta })),
    ending: [
      frame("response.output_text.done", { ...at, text }),
      frame("response.content_part.done", { ...at, part }),
      frame("response.output_item.done", { output_index: 0, item: { ...item, content: [part] } }),
      frame("response.completed", {
        response: response(text, "completed", usage === undefined ? {} : { usage }),
      }),
    ],
  };
}

function messagesFrames(pieces: readonly string[], usage: JsonObject | undefined): Frames {
  const frame = (type: string, members: JsonObject = {}) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`;
  // The output count at the beginning is a placeholder.
  const { output_tokens = null, output_tokens_details, ...input } = usage ?? {};
  const details = output_tokens_details === undefined ? {} : { output_tokens_details };
  const first = usage === undefined ? {} : { usage: { ...input, output_tokens: 1 } };
  const last = usage === undefined ? {} : { usage: { output_tokens, ...details } };
  return {
    opening: [
      frame("message_start", { message: { ...message([], null), ...first } }),
      frame("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
    ],
    pieces: pieces.map((text) => frame("content_block_delta", { index: 0, delta: { type: "text_delta", text } })),
    ending: [
      frame("content_block_stop", { index: 0 }),
      frame("message_delta", { delta: { stop_reason: "end_turn", stop_sequence: null }, ...last }),
      frame("message_stop"),
    ],
  };
}

function response(text: string, status: string, rest: JsonObject): JsonObject {
  return {
    id: "resp_1",
    object: "response",
    created_at: 1,
    status,
    model: "real-one",
    output: [{
      id: "msg_1",
      type: "message",
      role: "assistant",
      status: "completed",
      content: [{ type: "output_text", text, annotations: [] }],
    }],
    ...rest,
  };
}

function message(content: JsonObject[], stop_reason: string | null): JsonObject {
  return {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "real-one",
    content,
    stop_reason,
    stop_sequence: null,
  };
}
