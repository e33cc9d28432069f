import { assertEquals } from "@std/assert";
import { aggregateEvents } from "../../../lib/protocols/canonical/aggregate_events.ts";
import type { ContentBlock, Reply, ReplyEvent } from "../../../lib/protocols/canonical/types.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { geminiUpstream } from "../../../lib/protocols/gemini/upstream.ts";
import { ANSWERS, framesOf, NAMES, ORIGIN, read } from "./recorded_streams.ts";

const TEXT_SIGNATURE = { issuer: "google", value: "c2lnLXRleHQ=", id: "text" };
const AFTER_TEXT: ContentBlock = hidden({ ...TEXT_SIGNATURE, id: "text:end" });

function hidden(signature: { issuer: string; value: string; id?: string }): ContentBlock {
  return { type: "reasoning", text: "", hidden: true, signature };
}

function text(text: string): ContentBlock {
  return { type: "text", text };
}

function thought(text: string, value?: string): ContentBlock {
  return { type: "reasoning", text, ...(value !== undefined && { signature: { issuer: "google", value } }) };
}

/** The expected reply of every recorded answer. Generated ids come from `ids()`. */
const REPLIES: Readonly<Record<string, (ids: string[]) => Omit<Reply, "id">>> = {
  text: () => ({
    blocks: [text("The Danube rises in the Black Forest. 🌊")],
    finish: "end",
    usage: { prompt: 9, completion: 9 },
  }),
  text_signed_last: () => ({
    blocks: [text("Twelve months."), AFTER_TEXT],
    finish: "end",
    usage: { prompt: 9, completion: 43, reasoning: 40 },
  }),
  text_signed_by_empty_part: () => ({
    blocks: [text("Twelve months."), AFTER_TEXT],
    finish: "end",
    usage: { prompt: 9, completion: 43, reasoning: 40 },
  }),
  text_signed_by_bare_part: () => ({
    blocks: [text("Twelve months."), AFTER_TEXT],
    finish: "end",
    usage: { prompt: 9, completion: 43, reasoning: 40 },
  }),
  text_signed_first: () => ({
    blocks: [hidden(TEXT_SIGNATURE), text("Twelve months.")],
    finish: "end",
    usage: { prompt: 9, completion: 43, reasoning: 40 },
  }),
  call_malformed: () => ({ blocks: [text("Let me see.")], finish: "length", usage: { prompt: 9, completion: 3 } }),
  thoughts: () => ({
    blocks: [thought("**Counting**\n\nFirst the years."), text("Seven.")],
    finish: "end",
    usage: { prompt: 9, completion: 32, reasoning: 30 },
  }),
  thoughts_signed: () => ({
    blocks: [thought("First the years. Then the days.", "c2lnLXRob3VnaHQ="), thought("Again."), text("Seven.")],
    finish: "end",
    usage: { prompt: 9, completion: 35, reasoning: 33 },
  }),
  thoughts_hidden: () => ({
    blocks: [hidden({ issuer: "google", value: "c2lnLWhpZGRlbg==" }), text("Seven.")],
    finish: "end",
    usage: { prompt: 9, completion: 14, reasoning: 12 },
  }),
  call: ([id = ""]) => ({
    blocks: [
      hidden({ issuer: "google", value: "c2lnLWNhbGw=", id: `call:${id}` }),
      { type: "tool_call", id, name: "weather", arguments: '{"city":"Ulm","days":2.0}' },
    ],
    finish: "tool_use",
    usage: { prompt: 50, completion: 28, reasoning: 20 },
  }),
  calls_parallel: ([first = "", second = "", third = ""]) => ({
    blocks: [
      hidden({ issuer: "google", value: "c2lnLWNhbGw=", id: `call:${first}` }),
      { type: "tool_call", id: first, name: "weather", arguments: '{"city":"Ulm"}' },
      { type: "tool_call", id: second, name: "weather", arguments: '{"city":"Ulm"}' },
      { type: "tool_call", id: third, name: "now", arguments: "{}" },
    ],
    finish: "tool_use",
    usage: { prompt: 50, completion: 40, reasoning: 20 },
  }),
  calls_with_ids: ([, , third = ""]) => ({
    blocks: [
      hidden({ issuer: "google", value: "c2lnLWE=", id: "call:fc-1" }),
      { type: "tool_call", id: "fc-1", name: "weather", arguments: '{"city":"Ulm"}' },
      hidden({ issuer: "google", value: "c2lnLWI=", id: "call:fc-2" }),
      { type: "tool_call", id: "fc-2", name: "weather", arguments: '{"city":"Linz"}' },
      { type: "tool_call", id: third, name: "now", arguments: "{}" },
    ],
    finish: "tool_use",
    usage: { prompt: 50, completion: 20 },
  }),
  thoughts_text_call: ([id = ""]) => ({
    blocks: [
      thought("I need the weather."),
      text("Let me look."),
      hidden({ issuer: "google", value: "c2lnLWNhbGw=", id: `call:${id}` }),
      { type: "tool_call", id, name: "weather", arguments: '{"city":"Ulm"}' },
    ],
    finish: "tool_use",
    usage: { prompt: 50, completion: 20, reasoning: 9 },
  }),
  length: () => ({
    blocks: [text("Once upon a time")],
    finish: "length",
    usage: { prompt: 9, completion: 4 },
  }),
  length_in_thoughts: () => ({ blocks: [], finish: "length", usage: { prompt: 9, completion: 64, reasoning: 64 } }),
  safety: () => ({ blocks: [text("Well, ")], finish: "refusal", usage: { prompt: 9, completion: 2 } }),
  prompt_blocked: () => ({ blocks: [], finish: "refusal", usage: { prompt: 9, completion: 0 } }),
  nothing: () => ({ blocks: [], finish: "end", usage: { prompt: 9, completion: 0 } }),
  stop_on_every_piece: () => ({
    blocks: [text("One, two.")],
    finish: "end",
    usage: { prompt: 9, completion: 4 },
  }),
  usage: () => ({
    blocks: [text("Hi.")],
    finish: "end",
    usage: { prompt: 272, input_cache_read: 768, completion: 9, reasoning: 7 },
  }),
  other_parts: () => ({
    blocks: [text("It is 42.")],
    finish: "end",
    usage: { prompt: 9, completion: 9, hostedCalls: { web_search: 1 } },
  }),
};

Deno.test("reader() reads recorded streams", () => {
  assertEquals(Object.keys(REPLIES).sort(), ANSWERS);
  for (const name of ANSWERS) {
    const { id, ...reply } = aggregateEvents(read(framesOf(name)));
    const ids = reply.blocks.flatMap((block) => block.type === "tool_call" ? [block.id] : []);
    assertEquals(reply, REPLIES[name]?.(ids), name);
    assertEquals(id, name === "stop_on_every_piece" ? undefined : "Gq8zabc", name);
    assertEquals(new Set(ids).size, ids.length, name);
  }
});

Deno.test("reader() emits pieces at once", () => {
  const reader = geminiUpstream.reader(ORIGIN);
  const [first, second, third] = framesOf("text");
  const steps: ReplyEvent[][] = [first, second, third].map((frame) => reader.push(frame ?? { data: "" }));
  assertEquals(steps, [
    [
      { type: "start", id: "Gq8zabc", usage: { prompt: 9 } },
      { type: "open", index: 0, block: { type: "text" } },
      { type: "delta", index: 0, text: "The Danube " },
    ],
    [{ type: "delta", index: 0, text: "rises in the Black Forest. 🌊" }],
    [],
  ]);
});

Deno.test("reader() generates ids that are stable for an answer and differ between answers", () => {
  const ids = (responseId: string | undefined) => {
    const parts = [{ functionCall: { name: "now" } }, { functionCall: { name: "now" } }];
    const body = { candidates: [{ content: { parts }, finishReason: "STOP" }], responseId };
    return geminiUpstream.readReply(body, ORIGIN).blocks.map((block) => block.type === "tool_call" ? block.id : "");
  };
  const all = [...ids("r1"), ...ids("r2"), ...ids(undefined)];
  assertEquals(new Set(all).size, 6);
  assertEquals(ids("r1"), all.slice(0, 2));
  for (const id of all) assertEquals(/^call_\d_[0-9a-f]{16}$/.test(id), true, id);
});

Deno.test("reader() maps finish reasons, and with calls to tool_use", () => {
  const reported = [{ text: "a" }];
  const call = [{ functionCall: { id: "1", name: "now", args: {} } }];
  const cases: [string, JsonObject[], string][] = [
    ["STOP", reported, "end"],
    ["STOP", call, "tool_use"],
    ["MAX_TOKENS", reported, "length"],
    ["MAX_TOKENS", call, "length"],
    ["CONTINUATION", reported, "length"],
    ...["SAFETY", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "IMAGE_SAFETY", "LANGUAGE", "RECITATION"].flatMap((
      reason,
    ): [string, JsonObject[], string][] => [[reason, [], "refusal"], [reason, reported, "refusal"]]),
    ["SAFETY", call, "tool_use"],
    ["OTHER", reported, "end"],
    ["OTHER", call, "tool_use"],
    ["OTHER", [], "error"],
    ["A_NEW_ONE", reported, "end"],
    ["A_NEW_ONE", [], "error"],
    ["MALFORMED_FUNCTION_CALL", reported, "length"],
    ["MALFORMED_FUNCTION_CALL", call, "tool_use"],
    ["MALFORMED_FUNCTION_CALL", [], "error"],
    ["UNEXPECTED_TOOL_CALL", [], "length"],
    ["TOO_MANY_TOOL_CALLS", call, "tool_use"],
    ["FINISH_REASON_UNSPECIFIED", reported, "error"],
  ];
  for (const [finishReason, parts, expected] of cases) {
    const data = JSON.stringify({ candidates: [{ content: { parts }, finishReason }] });
    const last = read([{ data }]).at(-1);
    const outcome = last?.type === "finish" ? last.reason : last?.type;
    assertEquals(outcome, expected, `${finishReason} after ${JSON.stringify(parts)}`);
  }
});

Deno.test("reader() ends a failing stream with one error of the right kind, after its content", () => {
  const cases: Readonly<Record<string, [number, string, string]>> = {
    error_call_malformed: [1, "upstream", "The model returned only a malformed function call"],
    error_cut: [3, "upstream", "The model's answer ended before it was complete"],
    error_first: [0, "overloaded", "The model's vendor is overloaded"],
    error_in_the_middle: [3, "upstream", "The model's vendor failed to answer"],
    error_other: [1, "upstream", "The model returned neither content nor a known finish reason"],
  };
  assertEquals(Object.keys(cases), NAMES.filter((name) => name.startsWith("error_")));
  for (const [name, [before, kind, message]] of Object.entries(cases)) {
    const events = read(framesOf(name));
    assertEquals(events.length, before + 1, name);
    const last = events.at(-1);
    assertEquals(last?.type === "error" ? [last.error.kind, last.error.message] : last, [kind, message], name);
  }
});

Deno.test("reader() reads usage without zeros, and invents nothing", () => {
  const cases: [JsonObject | undefined, JsonObject][] = [
    [undefined, {}],
    [{ promptTokenCount: "9", totalTokenCount: -1 }, {}],
    [{ promptTokenCount: 9 }, { prompt: 9 }],
    [{ promptTokenCount: 9, totalTokenCount: 9 }, { prompt: 9, completion: 0 }],
    [{ promptTokenCount: 9, cachedContentTokenCount: 12 }, {}],
    [{ promptTokenCount: 9, totalTokenCount: 30, thoughtsTokenCount: 5, toolUsePromptTokenCount: 4 }, {
      prompt: 13,
      completion: 17,
      reasoning: 5,
    }],
    [{ thoughtsTokenCount: 5 }, { completion: 5, reasoning: 5 }],
    [{ candidatesTokenCount: 2, thoughtsTokenCount: 5 }, { completion: 7, reasoning: 5 }],
  ];
  for (const [usageMetadata, usage] of cases) {
    const body = { candidates: [{ finishReason: "STOP" }], usageMetadata };
    assertEquals(geminiUpstream.readReply(body, ORIGIN).usage, usage, JSON.stringify(usageMetadata));
  }
});

Deno.test("a candidate with the index null is the first one", () => {
  const candidate = { index: null, content: { parts: [{ text: "Hi" }] }, finishReason: "STOP" };
  assertEquals(geminiUpstream.readReply({ candidates: [candidate] }, ORIGIN).blocks, [text("Hi")]);
});
