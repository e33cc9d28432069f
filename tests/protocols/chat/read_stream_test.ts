import { assert, assertEquals, assertLess, assertStringIncludes } from "@std/assert";
import { aggregateEvents, eventsOf } from "../../../lib/protocols/canonical/aggregate_events.ts";
import { checkGrammar } from "../canonical/event_grammar.ts";
import type { ReplyEvent } from "../../../lib/protocols/canonical/types.ts";
import type { Frame } from "../../../lib/protocols/codec.ts";
import { chat } from "../../../lib/protocols/chat/mod.ts";
import { chatUpstream } from "../../../lib/protocols/chat/upstream.ts";
import { CLIENT_CODECS } from "../../../lib/protocols/client_codecs.ts";
import { REPLIES } from "./replies.ts";
import { request, responseContextOf } from "./requests.ts";
import { framesOf, STREAMS } from "./upstream_streams.ts";
import { workedMs } from "../../support/turns.ts";

/** Reads frames and checks the order of the events. */
function read(frames: readonly Frame[]): ReplyEvent[] {
  const machine = chatUpstream.reader({ issuer: "acme" });
  const events = [...frames.flatMap((frame) => machine.push(frame)), ...machine.end()];
  assertEquals(machine.push({ data: '{"choices":[{"delta":{"content":"late"}}]}' }), []);
  assertEquals(machine.end(), []);
  const grammar = checkGrammar();
  events.forEach((event) => grammar.push(event));
  grammar.end();
  return events;
}

Deno.test("reader() reads recorded streams", () => {
  for (const [name, stream] of Object.entries(STREAMS)) {
    const events = read(framesOf(stream));
    const last = events.at(-1);
    if (stream.error !== undefined) {
      assert(last?.type === "error", name);
      assertEquals([last.error.kind, last.error.code], [stream.error.kind, stream.error.code], name);
    } else {
      assertEquals(aggregateEvents(events), stream.reply, name);
    }
  }
});

Deno.test("reader() emits each piece at once", () => {
  const machine = chatUpstream.reader({ issuer: "acme" });
  const push = (delta: unknown) => machine.push({ data: JSON.stringify({ id: "c1", choices: [{ index: 0, delta }] }) });
  assertEquals(push({ role: "assistant" }), [{ type: "start", id: "c1" }]);
  assertEquals(push({ content: "Hel" }), [
    { type: "open", index: 0, block: { type: "text" } },
    { type: "delta", index: 0, text: "Hel" },
  ]);
  assertEquals(push({ content: "lo" }), [{ type: "delta", index: 0, text: "lo" }]);
  const call = (index: number, args: string) => ({ tool_calls: [{ index, function: { arguments: args } }] });
  const open = (index: number) => ({ tool_calls: [{ index, id: `call_${index}`, function: { name: "add" } }] });
  assertEquals(push(open(0)), [
    { type: "close", index: 0 },
    { type: "open", index: 1, block: { type: "tool_call", id: "call_0", name: "add" } },
  ]);
  assertEquals(push(open(1)), []);
  assertEquals(push(call(1, "{}")), []);
  assertEquals(push(call(0, "{}")), [
    { type: "delta", index: 1, text: "{}" },
    { type: "close", index: 1 },
    { type: "open", index: 2, block: { type: "tool_call", id: "call_1", name: "add" } },
    { type: "delta", index: 2, text: "{}" },
  ]);
});

Deno.test("reader() takes a stream for cut if one of several answers has no end", () => {
  const chunk = (index: number, finish_reason: string | null) => ({
    data: JSON.stringify({ id: "c1", choices: [{ index, delta: { content: "Hi" }, finish_reason }] }),
  });
  const [begun, first, second] = [chunk(1, null), chunk(0, "stop"), chunk(1, "stop")];
  assertEquals(read([begun, first]).at(-1)?.type, "error");
  assertEquals(read([begun, second, first]).at(-1)?.type, "finish");
  assertEquals(read([begun, first, { data: "[DONE]" }]).at(-1)?.type, "finish");
});

Deno.test("reader() treats an event called error as an error", () => {
  const [only] = read([{ event: "error", data: '{"message":"Too many","code":"rate_limit_exceeded"}' }]);
  assert(only?.type === "error");
  assertEquals(only.error.kind, "exhausted");
});

Deno.test("reader() keeps bounded memory", () => {
  const piece = "x".repeat(1_000_000);
  const machine = chatUpstream.reader({ issuer: "acme" });
  const calls = (index: number, args: string) =>
    machine.push({
      data: JSON.stringify({
        choices: [{
          delta: { tool_calls: [{ index, id: `call_${index}`, function: { name: "a", arguments: args } }] },
        }],
      }),
    });
  calls(0, '{"x":"');
  const last = Array.from({ length: 12 }, () => calls(1, piece).at(-1)).find((event) => event?.type === "error");
  assert(last?.type === "error" && last.error.kind === "upstream");
});

Deno.test("reader() reads citations in chat's format", () => {
  const reply = REPLIES.citations;
  assert(reply !== undefined);
  const context = responseContextOf(request({ stream: true }));
  const machine = chat.writer(context);
  const { blocks } = aggregateEvents(
    read([...eventsOf(reply).flatMap((event) => machine.push(event)), ...machine.end()]),
  );
  const [text] = blocks;
  assert(text?.type === "text" && blocks.length === 1);
  assertEquals(text.text, "😀 So: Oslo.");
  assertEquals(text.citations?.map(({ from, value }) => [from, value.type]), [
    ["chat", "url_citation"],
    ["chat", "url_citation"],
    ["chat", "url_citation"],
  ]);
});

Deno.test("positions of citations count from the content in chat, and from the message in responses", () => {
  const push = (delta: unknown): Frame => ({ data: JSON.stringify({ id: "c1", choices: [{ index: 0, delta }] }) });
  const cited = (start_index: number, end_index: number) => ({
    type: "url_citation",
    url_citation: { url: "u", title: "t", start_index, end_index },
  });
  // The second range is in the first text.
  const annotations = [cited(7, 10), cited(0, 2)];
  const { blocks, ...others } = aggregateEvents(read([
    push({ content: "Hi 😀" }),
    push({ tool_calls: [{ index: 0, id: "c", function: { name: "f", arguments: "{}" } }] }),
    push({ content: "So: Oslo.", annotations }),
    { data: "[DONE]" },
  ]));
  const context = responseContextOf(request({}));
  const answer = JSON.stringify(chat.writeReply({ blocks, ...others }, context));
  assertStringIncludes(answer, JSON.stringify(annotations));
  const response = JSON.stringify(CLIENT_CODECS.responses.writeReply({ blocks, ...others }, context));
  assertStringIncludes(response, '"start_index":3,"end_index":6');
  assertStringIncludes(response, '"start_index":0,"end_index":9');
});

Deno.test("reader() limits signatures that wait", () => {
  const push = (delta: unknown): Frame => ({ data: JSON.stringify({ id: "c1", choices: [{ index: 0, delta }] }) });
  const data = "x".repeat(1_000_000);
  const signed = Array.from(
    { length: 12 },
    (_, index) => push({ reasoning_details: [{ type: "reasoning.encrypted", data, id: `r${index}`, index }] }),
  );
  const call = { index: 0, id: "c", function: { name: "f", arguments: "{" } };
  const last = read([push({ tool_calls: [call] }), ...signed]).at(-1);
  assert(last?.type === "error");
  assertEquals(last.error.message, "The model's answer has too many interleaved parts");
});

Deno.test("reader() takes linear time for white space without end", () => {
  const machine = chatUpstream.reader({ issuer: "acme" });
  const logprobs = { content: [{ token: " ", logprob: -1 }] };
  const data = JSON.stringify({ id: "c1", choices: [{ index: 0, delta: { content: " " }, logprobs }] });
  const start = workedMs();
  for (let count = 0; count < 50_000; count++) machine.push({ data });
  assertLess(workedMs() - start, 5_000);
});
