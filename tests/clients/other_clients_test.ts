import { assertEquals, assertStringIncludes } from "@std/assert";
import { sharedGateway } from "./gateway.ts";
import { type Body, post, readBody, VERSION } from "./sse.ts";
import { ECHO } from "./upstreams.ts";

const gateway = sharedGateway();

const CACHED = { cache_control: { type: "ephemeral" } };
const SCHEMA = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const CALL = { type: "function_call", call_id: "call_1", name: "weather", arguments: '{"city":"Oslo"}' };
const RESULT = { type: "function_call_output", call_id: "call_1", output: "Snow" };

/** What clients send beside the plain form of a request, all of them after a call of the tool `weather`. */
const RESPONSES: [string, Body][] = [
  ["Vercel AI SDK: assistant items and calls without ids", {
    input: [
      { role: "developer", content: "Be brief." },
      { role: "user", content: [{ type: "input_text", text: "Weather?" }] },
      { role: "assistant", content: [{ type: "output_text", text: "Let me see." }] },
      CALL,
      RESULT,
    ],
  }],
  ["LangChain: empty text options and no strictness", {
    input: [{ type: "message", role: "user", content: "Weather?" }, CALL, RESULT],
    text: {},
    tools: [{ type: "function", name: "weather", parameters: SCHEMA, strict: null }],
  }],
  ["OpenAI Agents: empty lists", {
    input: [{ role: "user", content: "Weather?" }, { ...CALL, id: "fc_1", status: "completed" }, RESULT],
    include: [],
    tools: [{ type: "function", name: "weather", parameters: SCHEMA, strict: false }],
  }],
  ["Cline: hosted tools and truncation", {
    input: [{ role: "user", content: "Weather?" }, CALL, RESULT],
    tools: [{ type: "web_search" }, { type: "image_generation" }, {
      type: "function",
      name: "weather",
      parameters: SCHEMA,
    }],
    truncation: "auto",
  }],
  ["pi: no reasoning, nothing stored", {
    input: [{ role: "user", content: "Weather?" }, CALL, RESULT],
    reasoning: { effort: "none" },
    store: false,
  }],
];

for (const [name, body] of RESPONSES) {
  Deno.test(`responses takes what clients send: ${name}`, async () => {
    const { status, output } = await readBody(await post(gateway(), "/v1/responses", { model: ECHO, ...body }));
    const [message] = output as { content: { text: string; annotations: unknown[] }[] }[];
    assertEquals([status, message?.content[0]?.text, message?.content[0]?.annotations], ["completed", "Snow", []]);
  });
}

const CHAT_CALL = { id: "call_1", type: "function", function: { name: "weather", arguments: '{"city":"Oslo"}' } };

const CHAT: [string, Body][] = [
  ["Qwen Code: tool messages of parts", {
    messages: [
      { role: "user", content: [{ type: "text", text: "Weather?" }] },
      { role: "assistant", content: null, tool_calls: [CHAT_CALL] },
      { role: "tool", tool_call_id: "call_1", content: [{ type: "text", text: "Snow" }] },
    ],
  }],
  ["pi: developer role, effort and store", {
    messages: [
      { role: "developer", content: "Be brief." },
      { role: "user", content: "Weather?" },
      { role: "assistant", content: "", tool_calls: [CHAT_CALL] },
      { role: "tool", tool_call_id: "call_1", content: "Snow" },
    ],
    reasoning_effort: "medium",
    max_completion_tokens: 32_000,
    store: false,
  }],
  ["DeepSeek's clients: reasoning text without a signature", {
    messages: [
      { role: "user", content: "Weather?" },
      { role: "assistant", content: null, reasoning_content: "Where?", tool_calls: [CHAT_CALL] },
      { role: "tool", tool_call_id: "call_1", content: "Snow" },
    ],
  }],
];

for (const [name, body] of CHAT) {
  Deno.test(`chat takes what clients send: ${name}`, async () => {
    const answer = await readBody(await post(gateway(), "/v1/chat/completions", { model: ECHO, ...body }));
    const [choice] = answer.choices as { message: { content: string } }[];
    assertEquals(choice?.message.content, "Snow");
  });
}

const MESSAGES_CALL = { type: "tool_use", id: "toolu_1", name: "weather", input: { city: "Oslo" } };
const MESSAGES_RESULT = { type: "tool_result", tool_use_id: "toolu_1", content: "Snow" };
const TOOL = { name: "weather", input_schema: SCHEMA };

const MESSAGES: [string, Body, Record<string, string>][] = [
  ["Vercel AI SDK: eager input", { tools: [{ ...TOOL, eager_input_streaming: true }] }, {}],
  ["opencode: cache marks on calls and results", {
    messages: [
      { role: "user", content: [{ type: "text", text: "Weather?", ...CACHED }] },
      { role: "assistant", content: [{ ...MESSAGES_CALL, ...CACHED }] },
      { role: "user", content: [{ ...MESSAGES_RESULT, ...CACHED }] },
    ],
  }, { "x-session-affinity": "ses_1" }],
  ["Continue: a cache mark on a tool", { tools: [{ ...TOOL, ...CACHED }] }, {
    "anthropic-beta": "prompt-caching-2024-07-31",
  }],
  ["Cline: a hosted tool among the tools", { tools: [TOOL, { type: "web_search_20250305", name: "web_search" }] }, {}],
  ["pi: thoughts in summary", { thinking: { type: "adaptive", display: "summarized" } }, {}],
];

for (const [name, body, headers] of MESSAGES) {
  Deno.test(`messages takes what clients send: ${name}`, async () => {
    const request = {
      model: ECHO,
      max_tokens: 32_000,
      messages: [
        { role: "user", content: "Weather?" },
        { role: "assistant", content: [MESSAGES_CALL] },
        { role: "user", content: [MESSAGES_RESULT] },
      ],
      ...body,
    };
    const answer = await readBody(
      await post(gateway(), "/anthropic/v1/messages", request, { ...VERSION, ...headers }),
    );
    assertEquals((answer.content as Body[]).at(-1), { type: "text", text: "Snow" });
  });
}

Deno.test("messages refuses a budget as large as the limit, and names the member", async () => {
  const response = await post(gateway(), "/anthropic/v1/messages", {
    model: ECHO,
    max_tokens: 32_000,
    thinking: { type: "enabled", budget_tokens: 32_000 },
    messages: [{ role: "user", content: "Hello" }],
  }, VERSION);
  const { error } = await response.json();
  assertEquals(response.status, 400);
  assertStringIncludes(error.message, "thinking.budget_tokens");
});
