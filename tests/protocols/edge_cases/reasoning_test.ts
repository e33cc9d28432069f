import { assert, assertEquals } from "@std/assert";
import { writeSignature } from "../../../lib/protocols/canonical/signature.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { UPSTREAM_CODECS } from "../../../lib/upstreams/protocols.ts";
import { PROTOCOLS } from "../../golden/crossings.ts";
import { replayBlocks, signatures } from "../../golden/round_trips.ts";
import { block, chunk, collected, events, framesOf, get, list, lost, message, sent, streamed } from "./play.ts";

const USER = { role: "user", content: "Go" };
const USER_TURN = { role: "user", parts: [{ text: "Hi" }] };
const TOOL = { name: "now", input_schema: { type: "object" } };
const CALL = { type: "tool_use", id: "t1", name: "now", input: {} };
const RESULT = { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: "12:00" }] };
const THINKING = { type: "thinking", thinking: "Plan.", signature: "RXFR" };
const REDACTED = { type: "redacted_thinking", data: "cmVk" };
const OMITTED = { type: "thinking", thinking: "", signature: "b21p" };

/** A round of a messages client with these assistant blocks. */
function round(...blocks: JsonObject[]): JsonObject {
  return { messages: [USER, { role: "assistant", content: [...blocks, CALL] }, RESULT], tools: [TOOL] };
}

function types(body: JsonObject): unknown[] {
  return list(get(body, "messages", 1, "content")).map((part) => get(part, "type"));
}

Deno.test("manual thinking is disabled if the last round lost its thinking", () => {
  const thinking = { type: "enabled", budget_tokens: 2_000 };
  const foreign = { ...THINKING, signature: writeSignature({ issuer: "openai", value: "gAAA" }, "anthropic") };
  for (const blocks of [[], [foreign], [{ ...THINKING, signature: "" }]]) {
    const body = sent("messages", "messages", { ...round(...blocks), thinking, model: "acme/manual" });
    assertEquals(body.thinking, { type: "disabled" });
    assert(lost("messages", "messages", { ...round(...blocks), thinking, model: "acme/manual" }).includes("thinking"));
  }
  const kept = sent("messages", "messages", { ...round(THINKING), thinking, model: "acme/manual" });
  assertEquals(get(kept.thinking, "type"), "enabled");
});

Deno.test("redacted thinking passes through every client and returns unchanged", () => {
  const stream = message([
    ...block(0, { type: "thinking", thinking: "", signature: "" }, { type: "signature_delta", signature: "b21p" }),
    ...block(1, REDACTED),
    ...block(2, { type: "text", text: "" }, { type: "text_delta", text: "So." }),
  ]);
  const reader = UPSTREAM_CODECS.messages.reader({ issuer: "anthropic" });
  assertEquals(framesOf(stream).flatMap((frame) => reader.push(frame)).at(-1)?.type, "finish");
  const requests: Record<string, JsonObject> = {
    chat: { messages: [USER, get(collected("messages", stream, "chat"), "choices", 0, "message") ?? null, USER] },
    responses: { input: [USER, ...list(collected("messages", stream, "responses").output), USER] },
    messages: {
      messages: [USER, { role: "assistant", content: collected("messages", stream, "messages").content }, USER],
    },
    gemini: {
      contents: [
        USER_TURN,
        get(collected("messages", stream, "gemini"), "candidates", 0, "content") ?? null,
        USER_TURN,
      ],
    },
  };
  for (const client of PROTOCOLS) {
    const body = sent(client, "messages", requests[client] ?? {});
    assertEquals(get(body, "messages", 1, "content"), [OMITTED, REDACTED, { type: "text", text: "So." }], client);
  }
});

Deno.test("unsigned reasoning has an empty signature, even as an event, and never reaches Anthropic", () => {
  const stream = [chunk({ reasoning_content: "Hm." }), chunk({ content: "Yes." }), chunk({}, "stop")];
  assertEquals(get(collected("chat", stream, "messages"), "content", 0), {
    type: "thinking",
    thinking: "Hm.",
    signature: "",
  });
  const deltas = streamed("chat", stream, "messages").map((event) => get(event, "delta"))
    .filter((delta) => ["thinking_delta", "signature_delta"].includes(String(get(delta, "type"))));
  assertEquals(deltas, [{ type: "thinking_delta", thinking: "Hm." }, { type: "signature_delta", signature: "" }]);
  const body = round({ type: "thinking", thinking: "Hm.", signature: "" });
  assertEquals(types(sent("messages", "messages", body)), ["tool_use"]);
  assertEquals(lost("messages", "messages", body), ["messages.thinking"]);
});

Deno.test("signed thinking with omitted text stays, thinking with neither is dropped", () => {
  assertEquals(types(sent("messages", "messages", round(OMITTED))), ["thinking", "tool_use"]);
  assertEquals(types(sent("messages", "messages", round({ ...OMITTED, signature: "" }))), ["tool_use"]);
});

Deno.test("reasoning returns only to the vendor that signed it", () => {
  const openai = {
    ...THINKING,
    signature: writeSignature({ issuer: "openai", value: "gAAA", id: "rs_1" }, "anthropic"),
  };
  assertEquals(types(sent("messages", "messages", round(openai))), ["tool_use"]);
  assertEquals(types(sent("messages", "messages", round(THINKING))), ["thinking", "tool_use"]);
  for (const to of ["chat", "responses", "gemini"]) {
    assert(!JSON.stringify(sent("messages", to, round(THINKING))).includes("Plan."), to);
    assert(lost("messages", to, round(THINKING)).includes("messages.thinking"), to);
  }
});

Deno.test("thinking between calls keeps its position and index", () => {
  const reported = [
    THINKING,
    { ...CALL, id: "t0" },
    { ...THINKING, signature: "c2Vj" },
    OMITTED,
    { type: "text", text: "And:" },
  ];
  const body = sent("messages", "messages", {
    ...round(...reported),
    messages: [USER, { role: "assistant", content: [...reported, CALL] }, {
      role: "user",
      content: [{ type: "tool_result", tool_use_id: "t0", content: "0" }, ...RESULT.content],
    }],
  });
  assertEquals(get(body, "messages", 1, "content"), [...reported, CALL]);
  const stream = message([
    ...block(0, { type: "thinking", thinking: "", signature: "" }, { type: "signature_delta", signature: "czE=" }),
    ...block(1, CALL),
    ...block(2, { type: "thinking", thinking: "", signature: "" }, { type: "signature_delta", signature: "czI=" }),
    ...block(3, { ...CALL, id: "t2" }),
  ], "tool_use");
  for (const client of ["responses", "messages"] as const) {
    const items = list(collected("messages", stream, client)[client === "messages" ? "content" : "output"]);
    const kinds = items.map((item) => /thinking|reasoning/.test(String(get(item, "type"))));
    assertEquals(kinds, [true, false, true, false], client);
  }
});

Deno.test("vendors that require reasoning back get it with every call, even empty", () => {
  const [signed, unsigned] = [round(THINKING), round({ ...THINKING, signature: "" })];
  assertEquals(get(sent("messages", "deepseek", unsigned), "messages", 1, "reasoning_content"), "Plan.");
  assertEquals(get(sent("messages", "deepseek", signed), "messages", 1, "reasoning_content"), "");
  assertEquals(get(sent("messages", "chat", unsigned), "messages", 1, "reasoning_content"), undefined);
});

Deno.test("a forced tool disables manual thinking, which is named", () => {
  const body = {
    messages: [USER],
    tools: [TOOL],
    tool_choice: { type: "tool", name: "now" },
    thinking: { type: "enabled", budget_tokens: 2_000 },
  };
  const manual = { ...body, model: "acme/manual" };
  assertEquals(sent("messages", "messages", manual).thinking, { type: "disabled" });
  assertEquals(sent("messages", "messages", manual).tool_choice, { type: "tool", name: "now" });
  assertEquals(lost("messages", "messages", manual), ["thinking"]);
});

Deno.test("encrypted reasoning returns complete with its id and summary; without its token it is dropped", () => {
  const item = {
    type: "reasoning",
    id: "rs_1",
    summary: [{ type: "summary_text", text: "One." }, { type: "summary_text", text: "Two." }],
    encrypted_content: "gAAA",
  };
  const input = (reasoning: JsonObject) => ({
    input: [USER, reasoning, { type: "function_call", call_id: "c1", name: "now", arguments: "{}" }, {
      type: "function_call_output",
      call_id: "c1",
      output: "12:00",
    }],
    tools: [{ type: "function", name: "now" }],
  });
  assertEquals(get(sent("responses", "responses", input(item)), "input", 1), item);
  const { encrypted_content: _, ...bare } = item;
  const without = sent("responses", "responses", input(bare));
  assertEquals(get(without, "input", 1, "type"), "function_call");
  assertEquals(lost("responses", "responses", input(bare)), ["input.reasoning"]);
});

Deno.test("encrypted reasoning passes through clients of messages and chat unchanged", () => {
  const stream = [
    { type: "response.created", response: { id: "resp_1", status: "in_progress", output: [] } },
    { type: "response.output_item.added", output_index: 0, item: { type: "reasoning", id: "rs_1", summary: [] } },
    {
      type: "response.output_item.done",
      output_index: 0,
      item: {
        type: "reasoning",
        id: "rs_1",
        summary: [{ type: "summary_text", text: "One." }],
        encrypted_content: "gAAA",
      },
    },
    { type: "response.completed", response: { id: "resp_1", status: "completed", output: [], usage: {} } },
  ];
  const all = events("responses", stream);
  assertEquals(all.at(-1)?.type, "finish");
  const message = get(collected("responses", stream, "chat"), "choices", 0, "message") ?? null;
  const content = collected("responses", stream, "messages").content;
  const bodies = [
    sent("chat", "responses", { messages: [USER, message, USER] }),
    sent("messages", "responses", { messages: [USER, { role: "assistant", content }, USER] }),
  ];
  for (const body of bodies) {
    assertEquals(get(body, "input", 1), {
      type: "reasoning",
      id: "rs_1",
      summary: [{ type: "summary_text", text: "One." }],
      encrypted_content: "gAAA",
    });
  }
});

Deno.test("a signature keeps its issuer in the message that each client sends back", () => {
  const reply = {
    blocks: ["anthropic", "openai", "google", "sluice"].map((issuer) => ({
      type: "reasoning" as const,
      text: "Plan.",
      signature: { issuer, value: `${issuer}-token` },
    })),
    finish: "end" as const,
    usage: {},
  };
  for (const client of PROTOCOLS) {
    assertEquals(signatures(replayBlocks(reply, client)), signatures(reply.blocks), client);
  }
});
