import { assertEquals, assertStringIncludes } from "@std/assert";
import { type Body, post, readBody, VERSION } from "./sse.ts";
import { droppedNames, type Route, routesOfTest, sharedCrossing } from "./upstreams.ts";

const gateway = sharedCrossing();

const CACHED = { cache_control: { type: "ephemeral" } };
const SCHEMA = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const CALL = { type: "function_call", call_id: "call_1", name: "weather", arguments: '{"city":"Oslo"}' };
const RESULT = { type: "function_call_output", call_id: "call_1", output: "Snow" };

/** Unusual forms of requests that clients send, all of them after a call of the tool `weather`. */
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

crossClients(RESPONSES, (name, route, body) => {
  Deno.test(`${route.model}: responses accepts requests of clients: ${name}`, async () => {
    const response = await post(gateway(route), "/v1/responses", { model: route.model, ...body });
    checkHosted(body, response);
    const { status, output } = await readBody(response);
    const [message] = output as { content: { text: string; annotations: unknown[] }[] }[];
    assertEquals([status, message?.content[0]?.text, message?.content[0]?.annotations], ["completed", "Snow", []]);
  });
});

const CHAT_CALL = { id: "call_1", type: "function", function: { name: "weather", arguments: '{"city":"Oslo"}' } };

const CHAT: [string, Body][] = [
  ["Qwen Code: tool messages of parts", {
    messages: [
      { role: "user", content: [{ type: "text", text: "Weather?" }] },
      { role: "assistant", content: null, tool_calls: [CHAT_CALL] },
      { role: "tool", tool_call_id: "call_1", content: [{ type: "text", text: "Snow" }] },
    ],
  }],
  ["OpenRouter's provider of the AI SDK: results with the tool's name", {
    provider: { require_parameters: true },
    messages: [
      { role: "user", content: "Weather?" },
      { role: "assistant", content: "", tool_calls: [CHAT_CALL] },
      { role: "tool", tool_call_id: "call_1", name: "weather", content: "Snow" },
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

crossClients(CHAT, (name, route, body) => {
  Deno.test(`${route.model}: chat accepts requests of clients: ${name}`, async () => {
    const answer = await readBody(
      await post(gateway(route), "/v1/chat/completions", { model: route.model, ...body }),
    );
    const [choice] = answer.choices as { message: { content: string } }[];
    assertEquals(choice?.message.content, "Snow");
  });
});

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

crossClients(MESSAGES, (name, route, body, headers) => {
  Deno.test(`${route.model}: messages accepts requests of clients: ${name}`, async () => {
    const request = {
      model: route.model,
      max_tokens: 32_000,
      messages: [
        { role: "user", content: "Weather?" },
        { role: "assistant", content: [MESSAGES_CALL] },
        { role: "user", content: [MESSAGES_RESULT] },
      ],
      ...body,
    };
    const response = await post(gateway(route), "/anthropic/v1/messages", request, { ...VERSION, ...headers });
    checkHosted(body, response);
    const { content } = await readBody(response);
    assertEquals((content as Body[]).filter(({ type }) => type === "text"), [{ type: "text", text: "Snow" }]);
  });
});

for (const route of routesOfTest()) {
  Deno.test(`${route.model}: messages rejects a budget as large as the limit, and names the member`, async () => {
    const response = await post(gateway(route), "/anthropic/v1/messages", {
      model: route.model,
      max_tokens: 32_000,
      thinking: { type: "enabled", budget_tokens: 32_000 },
      messages: [{ role: "user", content: "Hello" }],
    }, VERSION);
    const { error } = await response.json();
    assertEquals(response.status, 400);
    assertStringIncludes(error.message, "thinking.budget_tokens");
  });
}

/** Calls a function for each client's body and each route to the model. */
function crossClients(
  table: readonly (readonly [name: string, body: Body, headers?: Record<string, string>])[],
  test: (name: string, route: Route, body: Body, headers: Record<string, string>) => void,
): void {
  for (const [name, body, headers = {}] of table) {
    for (const route of routesOfTest()) test(name, route, body, headers);
  }
}

/** Hosted tools run nowhere, and are named: the group of the key does not allow them. */
function checkHosted({ tools = [] }: Body, response: Response): void {
  const hosted = (tools as Body[]).filter((tool) => /search|generation/.test(String(tool.type)));
  const expected = hosted.map(({ type }) => `tools.${type}`);
  assertEquals(droppedNames(response).filter((name) => name.startsWith("tools.")), expected);
}
