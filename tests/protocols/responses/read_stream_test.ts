import { assert, assertEquals, assertLess, assertThrows } from "@std/assert";
import { aggregateEvents } from "../../../lib/protocols/canonical/aggregate_events.ts";
import { checkGrammar } from "../canonical/event_grammar.ts";
import type { Reply, ReplyEvent } from "../../../lib/protocols/canonical/types.ts";
import { GatewayError } from "../../../lib/errors.ts";
import { isObject, type JsonObject } from "../../../lib/json/mod.ts";
import type { Frame } from "../../../lib/protocols/codec.ts";
import { responsesUpstream } from "../../../lib/protocols/responses/upstream.ts";
import { skipIf } from "../../support/skip.ts";
import { workedMs } from "../../support/turns.ts";
import { type Outcome, streamEvents, streamFrames, STREAMS, USAGE } from "./upstream_streams.ts";

const ORIGIN = { issuer: "openai" };

/** Events of a stream, checked against the grammar. */
function read(frames: Frame[]): ReplyEvent[] {
  const reader = responsesUpstream.reader(ORIGIN);
  const grammar = checkGrammar();
  const events = [...frames.flatMap((frame) => reader.push(frame)), ...reader.end()].flatMap(grammar.push);
  grammar.end();
  return events;
}

function outcomeOf(events: ReplyEvent[]): Outcome {
  const last = events.at(-1);
  if (last?.type === "error") {
    const { kind, code, message } = last.error;
    return { error: kind, ...(code !== undefined && { code }), message };
  }
  const { blocks, finish, usage } = aggregateEvents(events);
  return { blocks, finish, usage };
}

Deno.test("reader() reads every stream", async (t) => {
  for (const [name, wanted] of Object.entries(STREAMS)) {
    await t.step(name, () => {
      const got = outcomeOf(read(streamFrames(name)));
      if ("error" in wanted) {
        assert("error" in got);
        assertEquals(got, { ...wanted, message: wanted.message ?? got.message });
      } else {
        assertEquals(got, { usage: USAGE, ...wanted });
      }
    });
  }
});

Deno.test("reader() starts nothing if an error comes first", () => {
  const [, , failed] = streamFrames("failed_context");
  assert(failed !== undefined);
  for (const frames of [streamFrames("error_first"), [failed], []]) {
    assertEquals(read(frames).map(({ type }) => type), ["error"]);
  }
});

Deno.test("reader() emits text at once", () => {
  const reader = responsesUpstream.reader(ORIGIN);
  const types = streamFrames("text").map((frame) => reader.push(frame).map(({ type }) => type));
  assertEquals(types, [
    ["start"],
    [],
    [],
    [],
    ["open", "delta"],
    ["delta"],
    ["delta"],
    [],
    ["close"],
    [],
    ["finish"],
  ]);
});

Deno.test("reader() ends with an error for a frame that is not JSON", () => {
  for (const data of ["{", "7", "null", "upstream failure"]) {
    const [frame] = streamFrames("text");
    assert(frame !== undefined);
    assertEquals(outcomeOf(read([frame, { data }, ...streamFrames("text")])), {
      error: "upstream",
      message: "Cannot read the model's answer: an event is not JSON",
    });
  }
});

Deno.test("reader() gives up on answers with too much unfinished", () => {
  const delta = JSON.stringify({
    type: "response.function_call_arguments.delta",
    item_id: "fc_1",
    delta: "x".repeat(1 << 20),
  });
  const outcome = outcomeOf(read(Array.from({ length: 20 }, () => ({ data: delta }))));
  assertEquals(outcome, {
    error: "upstream",
    message: "Cannot read the model's answer: it leaves too much unfinished",
  });
});

Deno.test("reader() gives up on answers with too many parts", () => {
  const parts = Array.from({ length: 60_000 }, (_, at) => ({ type: "output_text", text: `${at}` }));
  const item = { type: "message", id: "msg_1", role: "assistant", content: parts };
  const data = JSON.stringify({ type: "response.completed", response: { status: "completed", output: [item] } });
  assertEquals(outcomeOf(read([{ data }])), {
    error: "upstream",
    message: "Cannot read the model's answer: it has too many parts",
  });
});

Deno.test("readReply() agrees with reader() for the same response", async (t) => {
  for (const [name, wanted] of Object.entries(STREAMS)) {
    if ("error" in wanted || ["completed_without_output", "call_without_name"].includes(name)) continue;
    await t.step(name, () => {
      const response = streamEvents(name).at(-1)?.response;
      assert(isObject(response));
      const whole = responsesUpstream.readReply(response, ORIGIN);
      const streamed = aggregateEvents(read(streamFrames(name)));
      // If ids change, the token's id is that of any of the items seen.
      assertEquals(withoutIds(whole), withoutIds(streamed));
      assertEquals(whole.id, "resp_01");
    });
  }
});

function withoutIds(reply: Reply): Reply {
  return {
    ...reply,
    blocks: reply.blocks.map((block) =>
      block.type === "reasoning" && block.signature !== undefined
        ? { ...block, signature: { issuer: block.signature.issuer, value: block.signature.value } }
        : block
    ),
  };
}

Deno.test("readReply() throws an error in place of an answer", () => {
  const cases: [JsonObject, string][] = [
    [{ status: "failed", output: [], error: { code: "rate_limit_exceeded", message: "x" } }, "exhausted"],
    [{ status: "failed", error: { code: "server_error", message: "x" } }, "upstream"],
    [{ status: "cancelled", output: [] }, "upstream"],
    [{ status: "in_progress", output: [] }, "upstream"],
    [{ status: "completed" }, "upstream"],
    [{ error: { code: 429, message: "x" } }, "exhausted"],
    [{ error: { type: "invalid_request_error", message: "x" } }, "invalid"],
    [{ status: "completed", output: Array.from({ length: 5_000 }, () => ({ type: "message" })) }, "upstream"],
    [{ choices: [] }, "upstream"],
    [{}, "upstream"],
  ];
  for (const [body, kind] of cases) {
    assertEquals(assertThrows(() => responsesUpstream.readReply(body, ORIGIN), GatewayError).kind, kind);
  }
});

const collect: unknown = Reflect.get(globalThis, "gc");

Deno.test("the text of a finished item takes no memory", {
  ignore: skipIf(typeof collect !== "function", "V8's flag --expose-gc"),
}, () => {
  const machine = responsesUpstream.reader(ORIGIN);
  const used = () => {
    if (typeof collect === "function") collect();
    return Deno.memoryUsage().heapUsed;
  };
  const before = used();
  for (let at = 0; at < 100; at++) {
    const item = { type: "function_call", id: `i${at}`, call_id: `c${at}`, name: "f", arguments: "x".repeat(500_000) };
    machine.push({ data: JSON.stringify({ type: "response.output_item.done", output_index: at, item }) });
  }
  assert(used() - before < 20_000_000);
});

Deno.test("reader() reads calls with the same id, as in an answer that is not streamed", () => {
  const calls = [1, 2].map((a): JsonObject => (
    { type: "function_call", id: `fc_${a}`, call_id: "c", name: "f", arguments: `{"a":${a}}` }
  ));
  const frames = calls.flatMap((item, output_index) => [
    { type: "response.output_item.added", output_index, item: { ...item, arguments: "" } },
    {
      type: "response.function_call_arguments.delta",
      output_index,
      item_id: item.id ?? null,
      delta: item.arguments ?? null,
    },
    { type: "response.output_item.done", output_index, item },
  ]);
  for (const output of [[], calls]) {
    const end = { type: "response.completed", response: { status: "completed", output } };
    const { blocks } = aggregateEvents(read([...frames, end].map((event) => ({ data: JSON.stringify(event) }))));
    assertEquals(blocks, responsesUpstream.readReply({ status: "completed", output: calls }, ORIGIN).blocks);
  }
});

Deno.test("reader() takes linear time for items that the final output has under other ids", () => {
  const reader = responsesUpstream.reader(ORIGIN);
  const calls = (name: string) =>
    Array.from({ length: 4_000 }, (_, at): JsonObject => (
      { type: "function_call", id: `${name}_i${at}`, call_id: `${name}_c${at}`, name: "f", arguments: "{}" }
    ));
  for (const [output_index, item] of calls("a").entries()) {
    reader.push({ data: JSON.stringify({ type: "response.output_item.done", output_index, item }) });
  }
  const response = { status: "completed", output: calls("b") };
  const start = workedMs();
  reader.push({ data: JSON.stringify({ type: "response.completed", response }) });
  // Comparing each with each takes a second.
  assertLess(workedMs() - start, 400);
});
