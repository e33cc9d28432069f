import { assert, assertEquals } from "@std/assert";
import { GatewayError } from "../../../lib/errors.ts";
import { formatFrame, sseReader } from "../../../lib/server/sse.ts";
import type { Json, JsonObject } from "../../../lib/json/mod.ts";
import { UPSTREAM_CODECS } from "../../../lib/upstreams/protocols.ts";
import { CLIENTS, PROTOCOLS } from "../../golden/crossings.ts";
import { readEvents, recordedStream } from "../../golden/recorded.ts";
import { relayed, writeFrames } from "../../golden/round_trips.ts";
import {
  block,
  chunk,
  collected,
  events,
  framesOf,
  get,
  list,
  message,
  MESSAGE_START,
  messageDelta,
  streamed,
} from "./play.ts";

const TEXT = block(0, { type: "text", text: "" }, { type: "text_delta", text: "Hi" });
const SAID = [chunk({ role: "assistant", content: "Hi" })];

function lastType(values: readonly Json[]): unknown {
  return get(values.at(-1) ?? null, "type");
}

Deno.test("a stream that stops after its finish reason is complete, one before is an error", () => {
  const complete = [MESSAGE_START, ...TEXT, messageDelta("end_turn")];
  const cut = [MESSAGE_START, ...TEXT];
  assertEquals(lastType(streamed("messages", complete, "messages")), "message_stop");
  assertEquals(lastType(streamed("messages", cut, "messages")), "error");
  assertEquals(lastType(streamed("chat", [...SAID, chunk({}, "stop")], "messages")), "message_stop");
  assertEquals(lastType(streamed("chat", SAID, "messages")), "error");
  assertEquals(streamed("messages", complete, "chat").at(-1), "[DONE]");
  assert(get(streamed("messages", cut, "chat").at(-1) ?? null, "error") !== undefined);
});

Deno.test("repeated usage replaces earlier usage", () => {
  const usage = { input_tokens: 5, cache_read_input_tokens: 100, cache_creation_input_tokens: 7, output_tokens: 9 };
  const answer = collected("messages", message(TEXT, "end_turn", usage), "messages");
  assertEquals(
    ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens"].map((name) =>
      get(answer, "usage", name)
    ),
    [5, 100, 7, 9],
  );
  const chat = collected("messages", message(TEXT, "end_turn", usage), "chat");
  assertEquals([get(chat, "usage", "prompt_tokens"), get(chat, "usage", "completion_tokens")], [112, 9]);
});

Deno.test("prompt tokens that are split into cache classes only at the end are counted once", () => {
  const answer = writeFrames(readEvents(recordedStream("messages", "input_divided_late")), "chat");
  const usage = get(JSON.parse(answer.at(-2)?.data ?? "null"), "usage") ?? null;
  assertEquals([get(usage, "prompt_tokens"), get(usage, "prompt_tokens_details", "cached_tokens")], [8849, 8831]);
});

Deno.test("a character split into bytes is reassembled", () => {
  const bytes = new TextEncoder().encode(formatFrame({ data: JSON.stringify(chunk({ content: "é 👋 日本" })) }));
  for (let cut = 1; cut < bytes.length; cut++) {
    const decoder = new TextDecoder();
    const reader = sseReader();
    const pieces = [bytes.subarray(0, cut), bytes.subarray(cut)];
    const frames = pieces.flatMap((piece) => reader.push(decoder.decode(piece, { stream: true })));
    assertEquals(get(JSON.parse(frames[0]?.data ?? "{}"), "choices", 0, "delta", "content"), "é 👋 日本");
  }
});

Deno.test("events are read with every line end, without the space, and with fields in any order", () => {
  const spellings = [
    "event: a\ndata: {}\n\n",
    "event:a\r\ndata:{}\r\n\r\n",
    "data:{}\revent: a\r\r",
    "id: 1\nretry: 5\ndata: {}\nevent: a\n: c\n\n",
  ];
  for (const text of spellings) {
    for (let cut = 0; cut <= text.length; cut++) {
      const reader = sseReader();
      const frames = [...reader.push(text.slice(0, cut)), ...reader.push(text.slice(cut)), ...reader.end()];
      assertEquals(frames, [{ event: "a", data: "{}" }], JSON.stringify([text, cut]));
    }
  }
  assertEquals(sseReader().push("data: a\ndata: b\n\n"), [{ data: "a\nb" }]);
});

Deno.test("upstream comments are dropped, even if forwarded as data", () => {
  const stream = [": OPENROUTER PROCESSING", "", ...SAID, ": keep-alive", chunk({}, "stop"), "[DONE]"];
  assertEquals(sseReader().push(": ping\n\n:\n\ndata: {}\n\n"), [{ data: "{}" }]);
  for (const client of PROTOCOLS) {
    const all = JSON.stringify(streamed("chat", stream, client));
    assert(!all.includes("PROCESSING") && !all.includes("keep-alive"), client);
  }
  // With a blank line after it, a comment would make some clients dispatch an empty event.
  for (const client of ["chat", "responses"] as const) assert(/^:[^\n]*\n$/.test(CLIENTS[client].keepAlive), client);
});

Deno.test("usage ends no stream, the last counts, and the client's comes separately", () => {
  const usage = (total: number) => ({ usage: { prompt_tokens: 5, completion_tokens: total - 5, total_tokens: total } });
  const stream = [
    chunk({ role: "assistant", content: "H" }, null, usage(6)),
    chunk({ content: "i" }, null, usage(7)),
    chunk({}, "stop", usage(8)),
    chunk({ content: "" }, null, usage(9)),
    "[DONE]",
  ];
  const answer = streamed("chat", stream, "chat");
  assertEquals([get(answer.at(-2) ?? null, "choices"), get(answer.at(-2) ?? null, "usage", "total_tokens")], [[], 9]);
  const others = answer.slice(0, -2).map((event) => get(event, "usage"));
  assertEquals(others, others.map(() => null));
  assertEquals(get(collected("chat", stream, "chat"), "choices", 0, "message", "content"), "Hi");
});

Deno.test("a preamble without choices and a choice without a delta are neither content nor end", () => {
  const stream = [
    { id: "", model: "", choices: [], prompt_filter_results: [{ prompt_index: 0 }] },
    { id: "c1", choices: [{ index: 0, finish_reason: null, content_filter_offsets: {} }] },
    ...SAID,
    chunk({}, "stop"),
    "[DONE]",
  ];
  for (const client of PROTOCOLS) assert(JSON.stringify(collected("chat", stream, client)).includes('"Hi"'), client);
  assertEquals(get(streamed("chat", stream, "chat")[0] ?? null, "id"), "chatcmpl-r1");
});

const FAILURE = { error: { message: "Overloaded", type: "server_error", code: 503 } };

Deno.test("an error in place of the first event precedes everything", () => {
  const firsts: [Parameters<typeof events>[0], Json[]][] = [
    ["chat", [FAILURE]],
    ["chat", [{ id: "c1", choices: [], ...FAILURE }]],
    ["messages", [{ type: "error", error: { type: "overloaded_error", message: "Overloaded" } }]],
    ["responses", [{ type: "error", code: "server_is_overloaded", message: "Overloaded" }]],
    ["gemini", [{ error: { code: 503, message: "Overloaded", status: "UNAVAILABLE" } }]],
  ];
  for (const [from, data] of firsts) {
    const all = events(from, data);
    assertEquals(all.map(({ type }) => type).filter((type) => type !== "start"), ["error"], from);
  }
});

Deno.test("an error in the middle is the client protocol's own error without a clean end", () => {
  for (const failure of [FAILURE, { id: "c1", choices: [{ index: 0, delta: {} }], ...FAILURE }]) {
    const stream = [...SAID, failure, chunk({}, "stop"), "[DONE]"];
    assert(get(streamed("chat", stream, "chat").at(-1) ?? null, "error", "message") !== undefined);
    assertEquals(lastType(streamed("chat", stream, "messages")), "error");
    assertEquals(streamed("chat", stream, "responses").slice(-3).map((event) => get(event, "type")), [
      "error",
      "response.failed",
      undefined,
    ]);
  }
});

Deno.test("a responses client always gets one terminal event with the whole response", () => {
  const error = new GatewayError("timeout", "The model's answer took too long");
  const endings: JsonObject[][] = [
    [...SAID, chunk({}, "stop")],
    [...SAID, chunk({}, "length")],
    SAID,
    [],
  ];
  for (const stream of endings) {
    const values = streamed("chat", stream, "responses");
    const ends = values.filter((event) => /^response\.(completed|incomplete|failed)$/.test(String(get(event, "type"))));
    assertEquals(ends.length, 1);
    assert(Array.isArray(get(ends[0] ?? null, "response", "output")));
    assertEquals(values.at(-1), "[DONE]");
  }
  const aborted = writeFrames([{ type: "start" }, { type: "error", error }], "responses");
  assertEquals(aborted.at(-2)?.event, "response.failed");
});

Deno.test("a repeated start is ignored, and another start within a message is an error", () => {
  const repeated = [MESSAGE_START, MESSAGE_START, ...TEXT, messageDelta("end_turn"), { type: "message_stop" }];
  const starts = streamed("messages", repeated, "messages").filter((event) => get(event, "type") === "message_start");
  assertEquals([starts.length, lastType(streamed("messages", repeated, "messages"))], [1, "message_stop"]);
  assertEquals(relayed(framesOf(repeated), "messages").filter(({ event }) => event === "message_start").length, 1);
  const other = { type: "message_start", message: { id: "msg_other", role: "assistant", content: [], usage: {} } };
  assertEquals(lastType(streamed("messages", [MESSAGE_START, ...TEXT, other], "messages")), "error");
});

Deno.test("nothing is emitted after the end", () => {
  const after: Json[] = [
    ...message(TEXT),
    { type: "ping" },
    ...block(1, { type: "text", text: "More" }),
    { type: "error", error: { type: "api_error", message: "late" } },
  ];
  for (const client of PROTOCOLS) {
    assertEquals(streamed("messages", after, client), streamed("messages", message(TEXT), client), client);
  }
  const reader = UPSTREAM_CODECS.chat.reader({ issuer: "x" });
  const frames = framesOf([...SAID, chunk({}, "stop"), "[DONE]"]);
  for (const frame of frames) reader.push(frame);
  assertEquals([...reader.push(framesOf(SAID)[0] ?? { data: "" }), ...reader.end()], []);
});

Deno.test("items with the same index in a responses stream are distinguished by id", () => {
  const answer = collected("responses", streamOf("shared_place"), "messages");
  assertEquals(list(answer.content).map((part) => get(part, "id") ?? null), [null, "call_a", "call_b"]);
});

function streamOf(name: string): Json[] {
  return recordedStream("responses", name).frames.map(({ data }) => JSON.parse(data));
}
