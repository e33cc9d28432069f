import { assertEquals } from "@std/assert";
import type { Json, JsonObject } from "../../lib/json/mod.ts";
import { aggregateEvents, eventsOf } from "../../lib/protocols/canonical/aggregate_events.ts";
import type { Protocol } from "../../lib/protocols/canonical/types.ts";
import { enforceStopSequences } from "../../lib/protocols/translate/stop_sequences.ts";
import { PROTOCOLS } from "../golden/crossings.ts";
import { chunk, collected, events, get, list, lost, sent, streamed, whole } from "./translated.ts";

const HI = { token: "Hi", logprob: -0.1, bytes: [72, 105], top_logprobs: [{ token: "Yo", logprob: -2, bytes: null }] };
const YOU = { token: " you", logprob: -0.25, bytes: null, top_logprobs: [] };
const SPACE = { token: " ", logprob: -3, bytes: [32], top_logprobs: [] };

/** A chunk of text with its tokens. */
function tokens(content: string, ...list: JsonObject[]): JsonObject {
  return { id: "c1", choices: [{ index: 0, delta: { content }, logprobs: { content: list }, finish_reason: null }] };
}

const CHAT_STREAM = [chunk({ role: "assistant", content: "" }), tokens("Hi", HI), tokens(" you", YOU)]
  .concat([chunk({}, "stop")]);

const PART = { type: "output_text", text: "Hi you", annotations: [], logprobs: [HI, YOU] };
const MESSAGE = { type: "message", id: "m", status: "completed", role: "assistant", content: [PART] };
const RESPONSE = { id: "r", status: "completed", output: [MESSAGE], usage: { input_tokens: 1, output_tokens: 2 } };

/** Responses' deltas have tokens without bytes. */
const RESPONSES_STREAM = [
  delta("Hi", [{ ...HI, top_logprobs: [{ token: "Yo", logprob: -2 }] }]),
  delta(" you", [{ token: " you", logprob: -0.25 }]),
  { type: "response.output_item.done", output_index: 0, item: MESSAGE },
  { type: "response.completed", response: RESPONSE },
];

function delta(text: string, logprobs: Json): JsonObject {
  return { type: "response.output_text.delta", item_id: "m", output_index: 0, content_index: 0, delta: text, logprobs };
}

/** The tokens of each event or chunk that has some. */
function tokensIn(values: readonly Json[], ...path: (string | number)[]): Json[] {
  return values.map((value) => get(value, ...path) ?? []).filter((tokens) => list(tokens).length > 0);
}

Deno.test("log probabilities of a stream come with their text", () => {
  const chunks = streamed("responses", RESPONSES_STREAM, "chat");
  assertEquals(tokensIn(chunks, "choices", 0, "logprobs", "content"), [[HI], [YOU]]);
  assertEquals(tokensIn(streamed("chat", CHAT_STREAM, "chat"), "choices", 0, "logprobs", "content"), [[HI], [YOU]]);

  const answer = streamed("chat", CHAT_STREAM, "responses");
  assertEquals(tokensIn(answer, "logprobs"), [[HI], [YOU], [HI, YOU]]);
  assertEquals(tokensIn(answer, "part", "logprobs"), [[HI, YOU]]);
  assertEquals(tokensIn(answer, "response", "output", 0, "content", 0, "logprobs"), [[HI, YOU]]);

  // The writer's own mark for a list.
  const text = "\ue000logprobs\ue000";
  const marked = streamed("chat", [tokens(text, HI), tokens(text, YOU), chunk({}, "stop")], "responses");
  assertEquals(get(marked.at(-2), "response", "output", 0, "content", 0), {
    ...PART,
    text: text + text,
  });
  assertEquals(tokensIn(marked, "logprobs"), [[HI], [YOU], [HI, YOU]]);
});

Deno.test("log probabilities of a whole answer come with its text", () => {
  const message = { role: "assistant", content: "Hi you" };
  const choice = { index: 0, message, logprobs: { content: [HI, YOU], refusal: null }, finish_reason: "stop" };
  const logprobs = { content: [HI, YOU], refusal: null };
  const answers: [Protocol, JsonObject][] = [["chat", { id: "c1", choices: [choice] }], ["responses", RESPONSE]];
  for (const [from, body] of answers) {
    assertEquals(get(whole(from, body, "chat"), "choices", 0, "logprobs"), logprobs);
    assertEquals(get(whole(from, body, "responses"), "output", 0, "content"), [PART]);
  }
  assertEquals(get(collected("responses", RESPONSES_STREAM, "chat"), "choices", 0, "logprobs"), logprobs);
  assertEquals(get(collected("chat", CHAT_STREAM, "responses"), "output", 0, "content"), [PART]);
});

Deno.test("tokens of white space before a text and of a text that waits are kept", () => {
  const call = { index: 0, id: "call_1", type: "function", function: { name: "now", arguments: "{" } };
  const rest = { index: 0, function: { arguments: "}" } };
  const late = [tokens(" ", SPACE), tokens("Hi", HI), chunk({ tool_calls: [call] }), tokens("Hi", HI)];
  const stream = [...late, tokens(" you", YOU), chunk({ tool_calls: [rest] }), chunk({}, "tool_calls")];
  assertEquals(tokensIn(streamed("chat", stream, "chat"), "choices", 0, "logprobs", "content"), [
    [SPACE, HI],
    [HI],
    [YOU],
  ]);
});

Deno.test("log probabilities of reasoning are not those of the text", () => {
  const thought = { index: 0, delta: { reasoning_content: "Hm" }, logprobs: { content: [SPACE] }, finish_reason: null };
  const stream = [{ id: "c1", choices: [thought] }, tokens("Hi", HI), chunk({}, "stop")];
  assertEquals(get(collected("chat", stream, "chat"), "choices", 0, "logprobs", "content"), [HI]);
});

Deno.test("tokens of a stop sequence that the gateway enforces are cut with it", () => {
  const replies = [events("chat", CHAT_STREAM), eventsOf(aggregateEvents(events("chat", CHAT_STREAM)))];
  for (const reply of replies) {
    const transform = enforceStopSequences(["you"]);
    const [block] = aggregateEvents(reply.flatMap((event) => transform(event))).blocks;
    assertEquals(block, { type: "text", text: "Hi ", logprobs: [HI] });
  }
  // The stop sequence begins in one delta and ends in the next.
  const token = (text: string) => ({ token: text, logprob: 0, bytes: null, top_logprobs: [] });
  const pieces = ["One", " two", " th", "ree", "!"];
  for (const [stop, text] of [["three", "One two "], ["two th", "One "], ["four", "One two three!"]] as const) {
    const transform = enforceStopSequences([stop]);
    const [block] = aggregateEvents([
      ...transform({ type: "open", index: 0, block: { type: "text" } }),
      ...pieces.flatMap((piece) => [
        ...transform({ type: "logprobs", index: 0, tokens: [token(piece)] }),
        ...transform({ type: "delta", index: 0, text: piece }),
      ]),
      ...transform({ type: "close", index: 0 }),
      ...transform({ type: "finish", reason: "end", usage: {} }),
    ]).blocks;
    const kept = pieces.filter((_, index) => pieces.slice(0, index + 1).join("").length <= text.length);
    assertEquals(block, { type: "text", text, logprobs: kept.map(token) });
  }
  // Tokens that are not spelled like their text do not wait for its end.
  const transform = enforceStopSequences(["four"]);
  transform({ type: "open", index: 0, block: { type: "text" } });
  const sent = Array.from({ length: 9 }, () => [
    ...transform({ type: "logprobs", index: 0, tokens: [token("bytes:\\x65")] }),
    ...transform({ type: "delta", index: 0, text: "e" }),
  ]).flat();
  assertEquals(sent.filter(({ type }) => type === "logprobs").length, 8);
});

Deno.test("clients without log probabilities get the text", () => {
  for (const client of PROTOCOLS) {
    const answer = JSON.stringify(collected("chat", CHAT_STREAM, client));
    assertEquals(answer.includes("Hi you"), true, client);
    assertEquals(/"logprob"/.test(answer), client === "chat" || client === "responses", client);
  }
});

Deno.test("log probabilities are requested where client and upstream have them in the same form", () => {
  const chat = { messages: [{ role: "user", content: "Go" }], logprobs: true, top_logprobs: 2 };
  const responses = { input: "Go", include: ["message.output_text.logprobs"], top_logprobs: 2 };
  const request = sent("chat", "responses", chat);
  assertEquals([get(request, "include", -1), request.top_logprobs], ["message.output_text.logprobs", 2]);
  assertEquals(get(sent("chat", "responses", { ...chat, top_logprobs: 0 }), "top_logprobs"), 0);
  const chatRequest = sent("responses", "chat", responses);
  assertEquals([chatRequest.logprobs, chatRequest.top_logprobs], [true, 2]);
  assertEquals(lost("chat", "responses", chat), []);
  assertEquals(lost("responses", "chat", responses), []);
  assertEquals(lost("responses", "chat", { ...responses, include: [] }), ["top_logprobs"]);
  for (const other of ["messages", "gemini"]) assertEquals(lost("chat", other, chat), ["logprobs", "top_logprobs"]);
  assertEquals(
    sent("chat", "responses", { ...chat, logprobs: false, top_logprobs: undefined }).top_logprobs,
    undefined,
  );
});
