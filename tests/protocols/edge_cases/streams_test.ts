import { assert, assertEquals } from "@std/assert";
import { SseReader } from "../../../lib/server/sse.ts";
import type { Json } from "../../../lib/json/mod.ts";
import { CLIENTS, PROTOCOLS } from "../../golden/crossings.ts";
import { readEvents, recordedStream } from "../../golden/recorded.ts";
import { relayed, writeFrames } from "../../golden/round_trips.ts";
import { block, chunk, collected, events, framesOf, get, list, MESSAGE_START, messageDelta, streamed } from "./play.ts";

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

Deno.test("prompt tokens that are split into cache classes only at the end are counted once", () => {
  const answer = writeFrames(readEvents(recordedStream("messages", "input_divided_late")), "chat");
  const usage = get(JSON.parse(answer.at(-2)?.data ?? "null"), "usage") ?? null;
  assertEquals([get(usage, "prompt_tokens"), get(usage, "prompt_tokens_details", "cached_tokens")], [8849, 8831]);
});

Deno.test("upstream comments are dropped, even if forwarded as data", () => {
  const stream = [": OPENROUTER PROCESSING", "", ...SAID, ": keep-alive", chunk({}, "stop"), "[DONE]"];
  assertEquals(new SseReader().push(": ping\n\n:\n\ndata: {}\n\n"), [{ data: "{}" }]);
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

Deno.test("a repeated start is ignored, and another start within a message is an error", () => {
  const repeated = [MESSAGE_START, MESSAGE_START, ...TEXT, messageDelta("end_turn"), { type: "message_stop" }];
  const starts = streamed("messages", repeated, "messages").filter((event) => get(event, "type") === "message_start");
  assertEquals([starts.length, lastType(streamed("messages", repeated, "messages"))], [1, "message_stop"]);
  assertEquals(relayed(framesOf(repeated), "messages").filter(({ event }) => event === "message_start").length, 1);
  const other = { type: "message_start", message: { id: "msg_other", role: "assistant", content: [], usage: {} } };
  assertEquals(lastType(streamed("messages", [MESSAGE_START, ...TEXT, other], "messages")), "error");
});

Deno.test("items with the same index in a responses stream are distinguished by id", () => {
  const answer = collected("responses", streamOf("shared_place"), "messages");
  assertEquals(list(answer.content).map((part) => get(part, "id") ?? null), [null, "call_a", "call_b"]);
});

function streamOf(name: string): Json[] {
  return recordedStream("responses", name).frames.map(({ data }) => JSON.parse(data));
}
