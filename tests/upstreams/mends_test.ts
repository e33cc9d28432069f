import { assertEquals, assertStrictEquals } from "@std/assert";
import { UnsupportedParameters } from "../../lib/protocols/canonical/unsupported_parameters.ts";
import type { Prompt, Reasoning } from "../../lib/protocols/canonical/types.ts";
import type { JsonObject } from "../../lib/json/mod.ts";
import { azure } from "../../lib/protocols/quirks/azure.ts";
import { compatible } from "../../lib/protocols/quirks/compatible.ts";
import { deepseek } from "../../lib/protocols/quirks/deepseek.ts";
import { glm } from "../../lib/protocols/quirks/glm.ts";
import { groq } from "../../lib/protocols/quirks/groq.ts";
import { kimi } from "../../lib/protocols/quirks/kimi.ts";
import type { Quirk } from "../../lib/protocols/quirks/quirk.ts";
import { QUIRKS } from "../../lib/protocols/quirks/mod.ts";
import { mistral } from "../../lib/protocols/quirks/mistral.ts";
import { ollama } from "../../lib/protocols/quirks/ollama.ts";
import { openai } from "../../lib/protocols/quirks/openai.ts";
import { openrouter, openrouterIssuer } from "../../lib/protocols/quirks/openrouter.ts";
import { qwen } from "../../lib/protocols/quirks/qwen.ts";
import { vllm } from "../../lib/protocols/quirks/vllm.ts";
import { xai } from "../../lib/protocols/quirks/xai.ts";
import { promptOf } from "../protocols/canonical/messages.ts";

/** A body as it is written before it is mended, what became of it, and what was asked. */
interface Case {
  body: JsonObject;
  mended: JsonObject;
  prompt?: Partial<Prompt>;
  /** The client's own body, where its words count. */
  request?: JsonObject;
  dropped?: string[];
}

const CALL = { id: "call_A1", type: "function", function: { name: "add", arguments: "{}" } };

function check(mend: Quirk, cases: readonly Case[]): void {
  for (const { body, mended, prompt, request, dropped = [] } of cases) {
    const before = structuredClone(body);
    const asked = promptOf([], { protocol: "messages", ...prompt });
    const names = new UnsupportedParameters(request && { prompt: asked, request });
    assertEquals(mend.body?.(body, asked, names) ?? body, mended);
    assertEquals(names.names, dropped);
    assertEquals(body, before, "a mend changes nothing in place");
  }
}

/** What every mend of a compatible server does. */
const OLDER: Case[] = [
  { body: { max_completion_tokens: 9, stream: true }, mended: { max_tokens: 9, stream: true } },
  { body: { safety_identifier: "a", user: "b" }, mended: { user: "a" }, dropped: ["user"] },
  { body: { max_completion_tokens: 9, max_tokens: 5 }, mended: { max_tokens: 9 } },
  { body: { max_completion_tokens: null, max_tokens: 5 }, mended: { max_tokens: 5 } },
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
    mended: {
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

Deno.test("mends give back the same values where there is nothing to reword", () => {
  const messages = [
    { role: "system", content: "Rules." },
    { role: "user", content: [{ type: "text", text: "A" }, { type: "text", text: "B" }] },
    { role: "assistant", content: "Let me see.", reasoning_content: "Hm.", tool_calls: [CALL] },
    { role: "tool", tool_call_id: "call_A1", content: "1" },
  ];
  const body: JsonObject = { model: "a", messages, tools: [{ type: "function", function: { name: "add" } }] };
  for (const [name, mend] of Object.entries(QUIRKS)) {
    const mended = mend.body?.(body, promptOf([]), new UnsupportedParameters()) ?? body;
    for (const member of Object.keys(body)) assertStrictEquals(mended[member], body[member], `${name} ${member}`);
  }
});

Deno.test("openai and azure need no mending", () => {
  assertEquals([openai, azure], [{}, {}]);
});

Deno.test("compatible servers get OpenAI's older words", () => {
  for (const mend of [compatible, ollama, vllm, groq, glm]) {
    check(mend, OLDER);
    assertEquals(mend.dialect?.customTools, false);
  }
});

Deno.test("deepseek and kimi get their reasoning back with every call", () => {
  const messages = [
    { role: "assistant", content: "Let me see.", tool_calls: [CALL] },
    { role: "assistant", content: "Let me see.", tool_calls: [CALL], reasoning_content: "Hm." },
    { role: "assistant", content: "Hi" },
  ];
  const mended = [{ ...messages[0], reasoning_content: "" }, messages[1] ?? {}, messages[2] ?? {}];
  for (const mend of [deepseek, kimi]) {
    check(mend, [{ body: { messages }, mended: { messages: mended } }]);
    assertEquals(mend.dialect?.unsignedReasoning, true);
  }
  check(deepseek, [{
    body: { messages: [{ role: "assistant", content: "", tool_calls: [CALL], reasoning: "Hm." }] },
    mended: {
      messages: [{ role: "assistant", content: "", tool_calls: [CALL], reasoning: "Hm.", reasoning_content: "Hm." }],
    },
  }, {
    body: { messages: [{ role: "assistant", content: null, tool_calls: [CALL] }] },
    mended: { messages: [{ role: "assistant", content: "", tool_calls: [CALL], reasoning_content: "" }] },
  }]);
});

Deno.test("deepseek, kimi and glm have a switch for thinking", () => {
  const cases: [reasoning: Reasoning | undefined, body: JsonObject, mended: JsonObject][] = [
    [undefined, {}, {}],
    [{ display: "summarized" }, {}, {}],
    [{ effort: "high" }, { reasoning_effort: "high" }, { thinking: { type: "enabled" } }],
    [{ mode: "manual", budgetTokens: 2048 }, { reasoning_effort: "medium" }, { thinking: { type: "enabled" } }],
    [{ mode: "adaptive" }, {}, { thinking: { type: "enabled" } }],
    [{ mode: "off" }, { reasoning_effort: "none" }, { thinking: { type: "disabled" } }],
    [{ mode: "off" }, { reasoning_effort: "none", thinking: { type: "auto" } }, { thinking: { type: "auto" } }],
  ];
  for (const [reasoning, body, mended] of cases) {
    for (const mend of [deepseek, kimi, glm]) {
      check(mend, [{ body, mended, prompt: { ...(reasoning && { reasoning }) } }]);
    }
  }
});

Deno.test("groq is asked to keep its thinking out of the text", () => {
  const prompt = { reasoning: { effort: "high" } } as const;
  check(groq, [
    { prompt, body: { reasoning_effort: "high" }, mended: { reasoning_effort: "high", reasoning_format: "parsed" } },
    {
      prompt: { reasoning: { mode: "off" } },
      body: { reasoning_effort: "none" },
      mended: { reasoning_effort: "none" },
    },
    {
      prompt,
      body: { reasoning_effort: "high", include_reasoning: false },
      mended: { reasoning_effort: "high", include_reasoning: false },
    },
  ]);
});

Deno.test("mistral gets its own words, and nothing it does not know", () => {
  check(mistral, [
    {
      body: {
        messages: [
          { role: "user", content: "Hi", name: "rider" },
          { role: "tool", tool_call_id: "a", content: "1", name: "add" },
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
      mended: {
        messages: [
          { role: "user", content: "Hi" },
          { role: "tool", tool_call_id: "a", content: "1", name: "add" },
        ],
        max_tokens: 9,
        random_seed: 7,
        stream: true,
        tool_choice: "any",
      },
      prompt: { protocol: "chat" },
      dropped: ["user", "service_tier", "messages.name"],
    },
    { body: { user: "u" }, mended: {}, request: { metadata: { user_id: "u" } }, dropped: ["metadata.user_id"] },
    { body: { safety_identifier: "u" }, mended: {}, prompt: { protocol: "chat" }, dropped: ["safety_identifier"] },
    { body: { safety_identifier: "u", user: "v" }, mended: {}, dropped: ["user", "safety_identifier"] },
    {
      body: { verbosity: "low", user: "u", safety_identifier: "u" },
      mended: {},
      prompt: { protocol: "responses" },
      request: { text: { verbosity: "low" }, safety_identifier: "u" },
      dropped: ["safety_identifier", "text.verbosity"],
    },
    { body: { tool_choice: "auto" }, mended: { tool_choice: "auto" } },
  ]);
  const { legal, max, exact } = mistral.dialect?.callId ?? {};
  assertEquals([max, exact, legal?.test("a"), legal?.test("_")], [9, true, true, false]);
});

Deno.test("xai keeps the newer word for the length", () => {
  check(xai, [{
    body: { max_completion_tokens: 9, messages: [{ role: "developer", content: "A" }] },
    mended: { max_completion_tokens: 9, messages: [{ role: "system", content: "A" }] },
  }]);
});

Deno.test("qwen has a switch for thinking with a budget beside it", () => {
  check(qwen, [
    ...OLDER,
    { prompt: { reasoning: { effort: "low" } }, body: { reasoning_effort: "low" }, mended: { enable_thinking: true } },
    {
      prompt: { reasoning: { mode: "manual", budgetTokens: 2048 } },
      body: { reasoning_effort: "medium" },
      mended: { enable_thinking: true, thinking_budget: 2048 },
    },
    { prompt: { reasoning: { mode: "off" } }, body: { reasoning_effort: "none" }, mended: { enable_thinking: false } },
  ]);
});

Deno.test("vllm is switched through the chat template", () => {
  check(vllm, [
    {
      prompt: { reasoning: { mode: "off" } },
      body: { reasoning_effort: "none", chat_template_kwargs: { a: 1 } },
      mended: { reasoning_effort: "none", chat_template_kwargs: { a: 1, enable_thinking: false } },
    },
    {
      prompt: { reasoning: { effort: "low" } },
      body: { reasoning_effort: "low", chat_template_kwargs: { enable_thinking: false } },
      mended: { reasoning_effort: "low", chat_template_kwargs: { enable_thinking: false } },
    },
  ]);
});

Deno.test("openrouter has a reasoning object and takes wishes about providers", () => {
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
      mended: written === undefined ? {} : { reasoning: written },
    })),
    {
      prompt: { provider: { order: ["ours"], only: ["ours"], zdr: true, data_collection: "deny", max_price: null } },
      body: {},
      mended: { provider: { data_collection: "deny", zdr: true } },
    },
    { prompt: { provider: { order: ["ours"] } }, body: {}, mended: {} },
    {
      prompt: { reasoning: { effort: "low", display: "summarized" } },
      body: { reasoning: { effort: "low", summary: "auto" } },
      mended: { reasoning: { effort: "low", summary: "auto" } },
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
