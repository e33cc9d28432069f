import { assertEquals, assertStrictEquals } from "@std/assert";
import { UnsupportedParameters } from "../../../lib/protocols/canonical/unsupported_parameters.ts";
import type { Prompt, Reasoning } from "../../../lib/protocols/canonical/types.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { compatible } from "../../../lib/protocols/quirks/compatible.ts";
import { deepseek } from "../../../lib/protocols/quirks/mod.ts";
import { glm } from "../../../lib/protocols/quirks/mod.ts";
import { groq } from "../../../lib/protocols/quirks/mod.ts";
import { kimi } from "../../../lib/protocols/quirks/mod.ts";
import type { Quirk } from "../../../lib/protocols/quirks/quirk.ts";
import { QUIRKS } from "../../../lib/protocols/quirks/mod.ts";
import { mistral } from "../../../lib/protocols/quirks/mistral.ts";
import { openrouter, openrouterIssuer } from "../../../lib/protocols/quirks/openrouter.ts";
import { qwen } from "../../../lib/protocols/quirks/mod.ts";
import { vllm } from "../../../lib/protocols/quirks/mod.ts";
import { xai } from "../../../lib/protocols/quirks/mod.ts";
import { promptOf } from "../canonical/messages.ts";

/** A body before and after rewriting, and its request. */
interface Case {
  body: JsonObject;
  rewritten: JsonObject;
  prompt?: Partial<Prompt>;
  /** The client's own body, where it matters. */
  request?: JsonObject;
  dropped?: string[];
  /** True if the model does not reason. */
  isPlain?: true;
}

const REASONING = { modes: ["adaptive" as const], efforts: ["high" as const] };

const CALL = { id: "call_A1", type: "function", function: { name: "add", arguments: "{}" } };

function check(quirk: Quirk, cases: readonly Case[]): void {
  for (const { body, rewritten, prompt, request, dropped = [], isPlain } of cases) {
    const before = structuredClone(body);
    const decoded = promptOf([], { protocol: "messages", ...prompt });
    const names = new UnsupportedParameters(request && { prompt: decoded, request });
    const row = isPlain === true ? {} : { reasoning: REASONING };
    assertEquals(quirk.body?.(body, decoded, names, row) ?? body, rewritten);
    assertEquals(names.names, dropped);
    assertEquals(body, before, "a quirk changes nothing in place");
  }
}

/** The common quirks of compatible servers. */
const OLDER: Case[] = [
  { body: { max_completion_tokens: 9, stream: true }, rewritten: { max_tokens: 9, stream: true } },
  { body: { safety_identifier: "a", user: "b" }, rewritten: { user: "a" }, dropped: ["user"] },
  { body: { max_completion_tokens: 9, max_tokens: 5 }, rewritten: { max_tokens: 9 } },
  { body: { max_completion_tokens: null, max_tokens: 5 }, rewritten: { max_tokens: 5 } },
  {
    body: {
      messages: [
        { role: "developer", content: [{ type: "text", text: "A" }, { type: "text", text: "B" }], name: "shop" },
        { role: "system", content: [{ type: "text", text: "A", cache_control: { type: "ephemeral" } }] },
        { role: "user", content: [{ type: "text", text: "A" }, { type: "text", text: "B" }] },
        { role: "assistant", content: null, refusal: "No." },
        { role: "assistant", content: "Well.", refusal: "No." },
      ],
    },
    rewritten: {
      messages: [
        { role: "system", name: "shop", content: "A\nB" },
        { role: "system", content: [{ type: "text", text: "A", cache_control: { type: "ephemeral" } }] },
        { role: "user", content: [{ type: "text", text: "A" }, { type: "text", text: "B" }] },
        { role: "assistant", content: "No." },
        { role: "assistant", content: "Well.\nNo." },
      ],
    },
  },
];

Deno.test("quirks return the same values if nothing changes", () => {
  const id = "ABCDEFGH1";
  for (const [name, quirk] of Object.entries(QUIRKS)) {
    const messages = [
      { role: "system", content: "Rules." },
      { role: "user", content: [{ type: "text", text: "A" }, { type: "text", text: "B" }] },
      {
        role: "assistant",
        content: "Let me see.",
        ...!["groq", "mistral"].includes(name) && { reasoning_content: "Hm." },
        tool_calls: [{ ...CALL, id }],
      },
      { role: "tool", tool_call_id: id, content: "1" },
    ];
    const body: JsonObject = { model: "a", messages, tools: [{ type: "function", function: { name: "add" } }] };
    const rewritten = quirk.body?.(body, promptOf([]), new UnsupportedParameters(), {}) ?? body;
    for (const member of Object.keys(body)) assertStrictEquals(rewritten[member], body[member], `${name} ${member}`);
  }
});

Deno.test("openai and azure have no quirks", () => {
  assertEquals([QUIRKS.openai, QUIRKS.azure], [{}, {}]);
});

Deno.test("compatible servers get OpenAI's older names", () => {
  for (const quirk of [compatible, QUIRKS.ollama, vllm, groq, glm]) {
    check(quirk, OLDER);
    assertEquals(quirk.dialect?.customTools, false);
  }
});

Deno.test("deepseek and kimi get their reasoning back with every call", () => {
  const messages = [
    { role: "assistant", content: "Let me see.", tool_calls: [CALL] },
    { role: "assistant", content: "Let me see.", tool_calls: [CALL], reasoning_content: "Hm." },
    { role: "assistant", content: "Hi" },
  ];
  const rewritten = [{ ...messages[0], reasoning_content: "" }, messages[1] ?? {}, messages[2] ?? {}];
  for (const quirk of [deepseek, kimi]) {
    check(quirk, [{ body: { messages }, rewritten: { messages: rewritten } }]);
    assertEquals(quirk.dialect?.unsignedReasoning, true);
  }
  check(deepseek, [{
    body: { messages: [{ role: "assistant", content: "", tool_calls: [CALL], reasoning: "Hm." }] },
    rewritten: {
      messages: [{ role: "assistant", content: "", tool_calls: [CALL], reasoning: "Hm.", reasoning_content: "Hm." }],
    },
  }, {
    body: { messages: [{ role: "assistant", content: null, tool_calls: [CALL] }] },
    rewritten: { messages: [{ role: "assistant", content: "", tool_calls: [CALL], reasoning_content: "" }] },
  }]);
});

Deno.test("deepseek, kimi and glm have a thinking switch", () => {
  const cases: [reasoning: Reasoning | undefined, body: JsonObject, rewritten: JsonObject][] = [
    [undefined, {}, {}],
    [{ display: "summarized" }, {}, {}],
    [{ effort: "high" }, { reasoning_effort: "high" }, { thinking: { type: "enabled" } }],
    [{ mode: "manual", budgetTokens: 2048 }, { reasoning_effort: "medium" }, { thinking: { type: "enabled" } }],
    [{ mode: "adaptive" }, {}, { thinking: { type: "enabled" } }],
    [{ mode: "off" }, { reasoning_effort: "none" }, { thinking: { type: "disabled" } }],
    [{ mode: "off" }, { reasoning_effort: "none", thinking: { type: "auto" } }, { thinking: { type: "auto" } }],
  ];
  for (const [reasoning, body, rewritten] of cases) {
    for (const quirk of [deepseek, kimi, glm]) {
      check(quirk, [{ body, rewritten, prompt: { ...(reasoning && { reasoning }) } }]);
    }
  }
});

Deno.test("groq is asked to keep reasoning out of the text", () => {
  const prompt = { reasoning: { effort: "high" } } as const;
  check(groq, [
    { prompt, body: { reasoning_effort: "high" }, rewritten: { reasoning_effort: "high", reasoning_format: "parsed" } },
    {
      prompt: { reasoning: { mode: "off" } },
      body: { reasoning_effort: "none" },
      rewritten: { reasoning_effort: "none" },
    },
  ]);
});

Deno.test("groq gets reasoning under its own name, and no other members of answers", () => {
  const messages = [
    { role: "user", content: "Hi", x: 1 },
    { role: "assistant", content: "Hi.", reasoning_content: "Hm", annotations: [], tool_calls: [CALL] },
    { role: "assistant", content: "Bye.", reasoning: "Hm", audio: { id: "a" } },
  ];
  const rewritten = [
    messages[0] ?? null,
    { role: "assistant", content: "Hi.", tool_calls: [CALL] },
    { role: "assistant", content: "Bye." },
  ];
  const reasoning = "Hm";
  check(groq, [
    {
      body: { messages },
      rewritten: { messages: rewritten.map((message, index) => index === 0 ? message : { ...message, reasoning }) },
      dropped: ["messages.audio"],
    },
    {
      body: { messages },
      rewritten: { messages: rewritten },
      isPlain: true,
      dropped: ["messages.thinking", "messages.audio"],
    },
  ]);
});

Deno.test("mistral gets its own names, and no unknown members", () => {
  check(mistral, [
    {
      body: {
        messages: [
          { role: "user", content: "Hi", name: "rider" },
          { role: "tool", tool_call_id: "ABCDEFGH1", content: "1", name: "add" },
        ],
        max_completion_tokens: 9,
        seed: 7,
        stream: true,
        stream_options: { include_usage: true },
        tool_choice: "required",
        user: "u",
        store: false,
        service_tier: "auto",
        prompt_cache_key: null,
      },
      rewritten: {
        messages: [
          { role: "user", content: "Hi" },
          { role: "tool", tool_call_id: "ABCDEFGH1", content: "1", name: "add" },
        ],
        max_tokens: 9,
        random_seed: 7,
        stream: true,
        tool_choice: "any",
      },
      prompt: { protocol: "chat" },
      dropped: ["user", "service_tier", "messages.name"],
    },
    { body: { user: "u" }, rewritten: {}, request: { metadata: { user_id: "u" } }, dropped: ["metadata.user_id"] },
    { body: { safety_identifier: "u" }, rewritten: {}, prompt: { protocol: "chat" }, dropped: ["safety_identifier"] },
    { body: { safety_identifier: "u", user: "v" }, rewritten: {}, dropped: ["user", "safety_identifier"] },
    {
      body: { verbosity: "low", user: "u", safety_identifier: "u" },
      rewritten: {},
      prompt: { protocol: "responses" },
      request: { text: { verbosity: "low" }, safety_identifier: "u" },
      dropped: ["safety_identifier", "text.verbosity"],
    },
    { body: { tool_choice: "auto" }, rewritten: { tool_choice: "auto" } },
  ]);
  const call = { ...CALL, extra_content: {} };
  const messages: JsonObject[] = [
    { role: "assistant", content: "Add.", reasoning_content: "Hm", tool_calls: [call], annotations: [], audio: null },
    { role: "tool", tool_call_id: CALL.id, content: "1" },
    { role: "assistant", content: null, reasoning: "\n", tool_calls: [{ ...CALL, id: "ABCDEFGH1" }] },
    { role: "assistant", content: "Bye", reasoning_details: [{ type: "reasoning.text" }] },
  ];
  const id = "PNR4drkw5";
  const others = [
    { role: "tool", tool_call_id: id, content: "1" },
    { role: "assistant", content: null, tool_calls: [{ ...CALL, id: "ABCDEFGH1" }] },
    { role: "assistant", content: "Bye" },
  ];
  const thinking = { type: "thinking", thinking: [{ type: "text", text: "Hm" }], closed: true };
  const first = { role: "assistant", tool_calls: [{ ...CALL, id }] };
  check(mistral, [
    {
      body: { messages },
      rewritten: { messages: [{ ...first, content: [thinking, { type: "text", text: "Add." }] }, ...others] },
      dropped: ["messages.reasoning_details"],
    },
    {
      body: { messages },
      rewritten: { messages: [{ ...first, content: "Add." }, ...others] },
      isPlain: true,
      prompt: { protocol: "chat" },
      dropped: ["reasoning_content", "messages.reasoning_details"],
    },
  ]);
});

Deno.test("xai keeps the newer name of the token limit", () => {
  check(xai, [{
    body: { max_completion_tokens: 9, messages: [{ role: "developer", content: "A" }] },
    rewritten: { max_completion_tokens: 9, messages: [{ role: "system", content: "A" }] },
  }]);
});

Deno.test("qwen has a thinking switch with a budget", () => {
  check(qwen, [
    ...OLDER,
    {
      prompt: { reasoning: { effort: "low" } },
      body: { reasoning_effort: "low" },
      rewritten: { enable_thinking: true },
    },
    {
      prompt: { reasoning: { mode: "manual", budgetTokens: 2048 } },
      body: { reasoning_effort: "medium" },
      rewritten: { enable_thinking: true, thinking_budget: 2048 },
    },
    {
      prompt: { reasoning: { mode: "off" } },
      body: { reasoning_effort: "none" },
      rewritten: { enable_thinking: false },
    },
  ]);
});

Deno.test("vllm is switched by the chat template", () => {
  check(vllm, [
    {
      prompt: { reasoning: { mode: "off" } },
      body: { reasoning_effort: "none", chat_template_kwargs: { a: 1 } },
      rewritten: { reasoning_effort: "none", chat_template_kwargs: { a: 1, enable_thinking: false } },
    },
    {
      prompt: { reasoning: { effort: "low" } },
      body: { reasoning_effort: "low", chat_template_kwargs: { enable_thinking: false } },
      rewritten: { reasoning_effort: "low", chat_template_kwargs: { enable_thinking: false } },
    },
  ]);
});

Deno.test("openrouter has a reasoning object and accepts provider preferences", () => {
  const reasonings: [reasoning: Reasoning, effort: string | undefined, written: JsonObject | undefined][] = [
    [{ effort: "high" }, "high", { effort: "high" }],
    [{ mode: "manual", budgetTokens: 2048, display: "omitted" }, "medium", { max_tokens: 2048, exclude: true }],
    [{ mode: "adaptive" }, undefined, { enabled: true }],
    [{ mode: "off" }, "none", { enabled: false }],
    [{ display: "summarized" }, undefined, undefined],
  ];
  check(openrouter, [
    ...OLDER,
    ...reasonings.map(([reasoning, effort, written]): Case => ({
      prompt: { reasoning },
      body: effort === undefined ? {} : { reasoning_effort: effort },
      rewritten: written === undefined ? {} : { reasoning: written },
    })),
    {
      prompt: { provider: { order: ["ours"], only: ["ours"], zdr: true, data_collection: "deny", max_price: null } },
      body: {},
      rewritten: { provider: { data_collection: "deny", zdr: true } },
    },
    { prompt: { provider: { order: ["ours"] } }, body: {}, rewritten: {} },
    {
      prompt: { reasoning: { effort: "low", display: "summarized" } },
      body: { reasoning: { effort: "low", summary: "auto" } },
      rewritten: { reasoning: { effort: "low", summary: "auto" } },
    },
  ]);
  assertEquals(openrouter.issuer?.("anthropic/claude-x"), "anthropic");
  const { reasoningDetails, cacheMarks, prefill } = openrouter.dialect ?? {};
  assertEquals([reasoningDetails, cacheMarks, prefill], [true, true, true]);
});

Deno.test("openrouterIssuer() is the vendor of the model", () => {
  const cases: [model: string, issuer: string][] = [
    ["anthropic/claude-x", "anthropic"],
    ["openai/gpt-x", "openai"],
    ["google/gemini-x:free", "google-gemini-v1"],
    ["x-ai/grok-x", "xai-responses-v1"],
    ["acme/thinker", "acme"],
    ["auto", "auto"],
  ];
  for (const [model, issuer] of cases) assertEquals(openrouterIssuer(model), issuer);
});
