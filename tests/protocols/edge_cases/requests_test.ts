import { assert, assertEquals } from "@std/assert";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { CLIENTS, echoOf } from "../../golden/crossings.ts";
import { crossRequest } from "../../golden/requests.ts";
import { chunk, events, get, list, lost, REQUIRED, sent } from "./play.ts";

const USER = { role: "user", content: "Go" };

Deno.test("a conversation that ends with the assistant gets a request to continue, for models that need it", () => {
  const begun = { messages: [USER, { role: "assistant", content: "One, " }] };
  for (const from of ["chat", "messages"] as const) {
    const body = sent(from, "messages", begun);
    assertEquals(list(body.messages).map((turn) => get(turn, "role")), ["user", "assistant", "user"]);
    assertEquals(lost(from, "messages", begun), ["prefill"]);
    const kept = sent(from, "messages", { ...begun, model: "acme/continues" });
    assertEquals(list(kept.messages).map((turn) => get(turn, "role")), ["user", "assistant"]);
  }
});

Deno.test("an empty message that is the whole conversation reaches upstreams as a message", () => {
  const prompts = {
    chat: { messages: [{ role: "user", content: "" }] },
    responses: { input: "" },
    messages: { messages: [{ role: "user", content: [] }] },
    gemini: { contents: [{ role: "user", parts: [{ text: "" }] }] },
  };
  for (const from of ["chat", "responses", "messages", "gemini"] as const) {
    for (const [to, member] of [["chat", "messages"], ["responses", "input"]] as const) {
      if (from !== to) assertEquals(list(sent(from, to, prompts[from])[member]).length, 1, `${from} to ${to}`);
    }
  }
});

Deno.test("an open call gets a failed result", () => {
  const body = sent("messages", "messages", {
    messages: [USER, { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "now", input: {} }] }],
    tools: [{ name: "now", input_schema: { type: "object" } }],
  });
  const [result] = list(get(body, "messages", 2, "content"));
  assertEquals([get(result, "type"), get(result, "tool_use_id"), get(result, "is_error")], ["tool_result", "t1", true]);
});

Deno.test("unsupported sampling parameters are dropped and named", () => {
  const sampling = { temperature: 0.2, top_p: 0.9 };
  const none = { messages: [USER], ...sampling, model: "acme/plain" };
  assertEquals(lost("chat", "messages", none), ["temperature", "top_p"]);
  assertEquals(get(sent("chat", "messages", none), "temperature"), undefined);
  const one = { messages: [USER], ...sampling, model: "acme/one-knob" };
  const body = sent("messages", "messages", one);
  assertEquals([body.temperature, body.top_p, lost("messages", "messages", one)], [0.2, undefined, ["top_p"]]);
});

Deno.test("stop sequences work for upstreams without them, with the right finish reason", () => {
  for (const from of ["chat", "messages"] as const) {
    const members: JsonObject = { messages: [USER], [from === "chat" ? "stop" : "stop_sequences"]: ["END"] };
    const { body, dropped, restore } = crossRequest(from, "responses", { ...REQUIRED[from], ...members });
    assertEquals([body.stop, body.stop_sequences, dropped], [undefined, undefined, []]);
    const machine = restore();
    const pieces = ["one E", "N", "D two"].map((content) => chunk({ content }));
    const settled = events("chat", [...pieces, chunk({}, "stop")]).flatMap((event) => machine.push(event));
    assertEquals(settled.flatMap((event) => event.type === "delta" ? [event.text] : []).join(""), "one ");
    const writer = CLIENTS[from].writer(echoOf(from));
    const frames = settled.flatMap((event) => writer.push(event));
    const why = from === "chat" ? '"finish_reason":"stop"' : '"stop_reason":"stop_sequence","stop_sequence":"END"';
    assert(frames.some(({ data }) => data.includes(why)), from);
  }
});

Deno.test("at most four cache marks are sent, hour-long ones first, none on reasoning or empty blocks", () => {
  const mark = (ttl?: string) => ({ cache_control: { type: "ephemeral", ...(ttl !== undefined && { ttl }) } });
  const text = (text: string, ttl?: string) => ({ type: "text", text, ...mark(ttl) });
  const body = sent("chat", "messages", {
    messages: [
      { role: "system", content: [text("System", "1h")] },
      { role: "user", content: [text("One"), text("Two")] },
      { role: "assistant", content: [text("Three")], ...mark() },
      { role: "user", content: [text("Four"), { type: "text", text: "", ...mark() }] },
    ],
    tools: [{ type: "function", function: { name: "now" }, ...mark() }],
  });
  const marks = JSON.stringify(body).match(/"cache_control":\{[^}]*\}/g) ?? [];
  assert(marks.length <= 4 && marks.length > 0, String(marks));
  const ttls = marks.map((mark) => mark.includes("1h"));
  assertEquals(ttls, ttls.toSorted((a, b) => Number(b) - Number(a)), "hour-long marks come first");
  assert(!JSON.stringify(body).includes('"text":""'));
  assert(lost("chat", "chat", { messages: [{ role: "user", content: [text("One")] }] }).includes("cache_control"));
});

Deno.test("context edits of one vendor are dropped for others", () => {
  const received = { messages: [USER], context_management: { edits: [{ type: "clear_tool_uses_20250919" }] } };
  assertEquals(sent("messages", "messages", received).context_management, received.context_management);
  for (const to of ["chat", "responses", "gemini"]) {
    assertEquals(get(sent("messages", to, received), "context_management"), undefined, to);
    assertEquals(lost("messages", to, received), ["context_management"], to);
  }
});
