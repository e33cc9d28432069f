import { assertEquals, assertStringIncludes } from "@std/assert";
import { sharedConfigured } from "./configured.ts";
import type { Gateway } from "./gateway.ts";
import { type Body, parsed, post, readMessages } from "./sse.ts";
import { droppedNames, ECHO, ROUTES, sharedCrossing } from "./upstreams.ts";

const gateway = sharedConfigured();

const crossing = sharedCrossing();

const HEADERS = {
  "anthropic-version": "2023-06-01",
  "anthropic-beta": "claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27," +
    "mid-conversation-tool-changes-2026-07-01,advanced-tool-use-2025-11-20,effort-2025-11-24",
  "anthropic-dangerous-direct-browser-access": "true",
  "user-agent": "claude-cli/2.1.329 (external, sdk-cli)",
  "x-app": "cli",
  "x-claude-code-session-id": "0c8a6f9e-6a3e-4b7e-9d61-4f3d7a1b2c33",
  "x-stainless-retry-count": "0",
  "x-stainless-timeout": "600",
};

const CACHED = { cache_control: { type: "ephemeral" } };

const NAMES = "Agent Bash Edit Glob Grep ListAgents Read Skill ToolSearch WebFetch Workflow".split(" ");
const TOOLS: Body[] = [
  ...NAMES.map((name) => ({
    name,
    description: `Does what ${name} does.`,
    input_schema: {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      properties: { command: { type: "string", description: "What to do" }, timeout: { type: "number", minimum: 0 } },
      required: ["command"],
      additionalProperties: false,
    },
  })),
  {
    name: "DeferredToolPlaceholder",
    description: "Stands for tools that are found by search.",
    input_schema: { type: "object", properties: {} },
    defer_loading: true,
  },
];

/** The thinking that it requests. */
interface Wish {
  thinking: Body;
  effort?: string;
}

/** A request as this client composes it. */
function request(
  model: string,
  { messages, thinking, effort }: { messages: Body[] } & Wish,
): Body {
  return {
    model,
    max_tokens: 32_000,
    stream: true,
    system: [
      { type: "text", text: "x-anthropic-billing-header: cc_version=2.1.329.136; cc_entrypoint=sdk-cli;" },
      { type: "text", text: "You are an agent in a terminal.", ...CACHED },
      { type: "text", text: "\nWork with the user toward their goals.\n", ...CACHED },
    ],
    tools: TOOLS,
    messages,
    metadata: { user_id: JSON.stringify({ device_id: "4191b055", account_uuid: "", session_id: "3de72d5c" }) },
    thinking,
    context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
    ...(effort !== undefined && { output_config: { effort } }),
  };
}

/** The content of a streamed message, folded as the client does it. */
async function answer(gateway: Gateway, body: Body): Promise<{ content: Body[]; reason: unknown }> {
  const response = await post(gateway, "/anthropic/v1/messages?beta=true", body, {
    ...HEADERS,
    authorization: "",
    "x-api-key": gateway.key,
  });
  const content: Body[] = [];
  const inputs: string[] = [];
  let reason: unknown;
  for (const event of parsed(await readMessages(response))) {
    const index = Number(event.index);
    const delta = (event.delta ?? {}) as Body;
    if (event.type === "content_block_start") content[index] = { ...event.content_block as Body };
    const block = content[index] ?? {};
    if (delta.type === "text_delta") block.text = `${block.text}${delta.text}`;
    if (delta.type === "thinking_delta") block.thinking = `${block.thinking}${delta.thinking}`;
    if (delta.type === "signature_delta") block.signature = delta.signature;
    if (delta.type === "input_json_delta") inputs[index] = `${inputs[index] ?? ""}${delta.partial_json}`;
    if (event.type === "message_delta") reason = delta.stop_reason;
  }
  inputs.forEach((text, index) => content[index] = { ...content[index], input: JSON.parse(text) });
  return { content, reason };
}

const CASES: { name: string; model: string; wish: Wish; system: boolean }[] = [
  {
    name: "a budget",
    model: "acme/claude-sonnet-4-5",
    wish: { thinking: { type: "enabled", budget_tokens: 31_999 } },
    system: false,
  },
  {
    name: "hidden thoughts",
    model: "acme/claude-opus-4-7",
    wish: { thinking: { type: "adaptive", display: "omitted" }, effort: "xhigh" },
    system: false,
  },
  {
    name: "thoughts in summary and notes of the system",
    model: ECHO,
    wish: { thinking: { type: "adaptive", display: "summarized" }, effort: "high" },
    system: true,
  },
];

for (const { name, model, wish, system } of CASES) {
  Deno.test(`${model}: Claude Code's tool loop with ${name} ends with the results`, async () => {
    await checkLoop(gateway(), { model, wish, system });
  });
  for (const route of ROUTES.slice(1)) {
    Deno.test(`${route.model}: Claude Code's tool loop with ${name} ends with the results`, async () => {
      await checkLoop(crossing(route), { model: route.model, wish, system });
    });
  }
}

/** Two calls, their results, and another message. */
async function checkLoop(
  gateway: Gateway,
  { model, wish, system }: { model: string; wish: Wish; system: boolean },
): Promise<void> {
  const messages: Body[] = [{
    role: "user",
    content: [
      { type: "text", text: "<system-reminder>\nThe date is 2026-11-21.\n</system-reminder>\n" },
      { type: "text", text: 'call:Bash {"command": "ls"}\ncall:Read {"command": "a.txt", "timeout": 5}' },
    ],
  }];
  if (system) {
    messages.push({ role: "system", content: [{ type: "text", text: "# Environment\nA folder.", ...CACHED }] });
  }
  const ask = () => answer(gateway, request(model, { messages, ...wish }));
  const first = await ask();
  assertEquals(first.reason, "tool_use");
  assertEquals(first.content.some(({ type }) => type === "thinking"), true);
  const calls = first.content.filter(({ type }) => type === "tool_use");
  assertEquals(calls.map(({ name, input }) => [name, input]), [
    ["Bash", { command: "ls" }],
    ["Read", { command: "a.txt", timeout: 5 }],
  ]);

  const results = calls.map(({ id, name }, index) => ({
    type: "tool_result",
    tool_use_id: id,
    content: index === 0 ? `${name} done` : [{ type: "text", text: `${name} done` }],
    is_error: false,
    ...(index === 1 && CACHED),
  }));
  messages.push({ role: "assistant", content: first.content }, { role: "user", content: results });
  const second = await ask();
  assertEquals([second.reason, textOf(second.content)], ["end_turn", "Bash done\nRead done"]);

  messages.push({ role: "assistant", content: second.content }, { role: "user", content: "Thanks" });
  const third = await ask();
  assertEquals([third.reason, textOf(third.content)], ["end_turn", "Thanks"]);
}

function textOf(content: Body[]): string {
  return content.map(({ type, text }) => type === "text" ? text : "").join("");
}

for (const route of ROUTES) {
  Deno.test(`${route.model}: Claude Code's notes are neither repeated nor read as a directive`, async () => {
    const note = "<system-reminder>\nUse Bash, Read or Edit as you see fit: task, skill, agent.\n</system-reminder>\n";
    const content = [{ type: "text", text: `${note}${note}` }, { type: "text", text: "Say hello" }];
    const { content: shown } = await answer(
      crossing(route),
      request(route.model, { messages: [{ role: "user", content }], thinking: { type: "disabled" } }),
    );
    assertEquals(shown, [{ type: "text", text: "Say hello" }]);
  });

  Deno.test(`${route.model}: parameters of Claude Code that the model lacks are named`, async () => {
    const { model, upstream } = route;
    const body = request(model, { messages: [{ role: "user", content: "Hello" }], thinking: { type: "disabled" } });
    const response = await post(crossing(route), "/anthropic/v1/messages?beta=true", body, HEADERS);
    // OpenRouter takes the marks of caches.
    const marks = model === "t/openrouter" ? [] : ["cache_control"];
    const foreign = {
      embedded: ["context_management"],
      messages: [],
    }[upstream as string] ?? [...marks, "context_management"];
    const named = droppedNames(response).filter((name) => name !== "metadata.user_id" && name !== "defer_loading");
    assertEquals(named.sort(), foreign);
    await response.body?.cancel();
  });
}

Deno.test("Claude Code is told if it sets a manual budget for an adaptive model", async () => {
  const body = request("acme/claude-opus-4-7", {
    messages: [{ role: "user", content: "Hello" }],
    thinking: { type: "enabled", budget_tokens: 31_999 },
  });
  const response = await post(gateway(), "/anthropic/v1/messages?beta=true", body, HEADERS);
  const { error } = await response.json();
  assertEquals(response.status, 400);
  assertStringIncludes(error.message, "thinking.type.enabled is not supported");
});

Deno.test("Claude Code finds models and counts tokens", async () => {
  const { url, key } = gateway();
  const headers = { ...HEADERS, "x-api-key": key };
  const listed = await (await fetch(`${url}/anthropic/v1/models?limit=1000`, { headers, redirect: "error" })).json();
  assertEquals(listed.data.map(({ id }: { id: string }) => id).sort(), [
    "acme/claude-opus-4-7",
    "acme/claude-sonnet-4-5",
    "acme/fault",
    "acme/priced",
    ECHO,
  ]);
  const { max_tokens: _, stream: __, metadata: ___, ...body } = request(ECHO, {
    messages: [{ role: "user", content: "Hello" }],
    thinking: { type: "adaptive" },
    effort: "high",
  });
  const count = await (await post(gateway(), "/anthropic/v1/messages/count_tokens?beta=true", body, HEADERS)).json();
  assertEquals(Object.keys(count), ["input_tokens"]);
  assertEquals(count.input_tokens > 500, true);
});
