import { assert, assertEquals } from "@std/assert";
import { lostReasoning, tampered } from "./signatures.ts";
import { type Body, parsed, post, readMessages } from "./sse.ts";
import { customCall, droppedNames, nameInNamespace, type Route, routesOfTest, sharedCrossing } from "./upstreams.ts";

const gateway = sharedCrossing();

const HEADERS = {
  originator: "codex_exec",
  "user-agent": "codex_exec/0.169.0 (Debian 12.0.0; x86_64) xterm",
  "session-id": "01a1fb99-c951-7c41-b92a-cad0e4088cda",
  "thread-id": "01a1fb99-c951-7c41-b92a-cad0e4088cda",
  "x-codex-beta-features": "remote_compaction_v2",
  "x-codex-turn-metadata": '{"session_id":"01a1fb99","request_kind":"turn","sandbox":"seccomp"}',
  "x-codex-window-id": "01a1fb99-c951-7c41-b92a-cad0e4088cda:0",
};

const COMMAND = {
  type: "function",
  name: "exec_command",
  description: "Runs a command.",
  strict: false,
  parameters: {
    type: "object",
    properties: { cmd: { type: "string" }, yield_time_ms: { type: "number" } },
    required: ["cmd"],
    additionalProperties: false,
  },
};
const GRAMMAR = { type: "grammar", syntax: "lark", definition: 'start: "*** Begin Patch" LF' };
const PATCH = { type: "custom", name: "apply_patch", description: "Edits files.", format: GRAMMAR };
const AGENTS = {
  type: "namespace",
  name: "multi_agent_v1",
  description: "Other agents.",
  tools: [
    {
      type: "function",
      name: "spawn_agent",
      description: "Starts one.",
      strict: false,
      parameters: { type: "object" },
    },
  ],
};
const TOOLS: Body[] = [
  COMMAND,
  PATCH,
  AGENTS,
  { type: "tool_search", execution: "client", description: "Finds tools.", parameters: { type: "object" } },
  { type: "web_search", external_web_access: false, search_content_types: ["text"] },
];

function message(role: string, ...texts: string[]): Body {
  return { type: "message", role, content: texts.map((text) => ({ type: "input_text", text })) };
}

const CONTEXT: Body[] = [
  message("developer", "You are a coding agent in a terminal."),
  message(
    "developer",
    "<skills_instructions>\nNone.\n</skills_instructions>",
    "<permissions>\nRead only.\n</permissions>",
  ),
  message("user", "<environment_context>\n  <cwd>/tmp</cwd>\n  <shell>bash</shell>\n</environment_context>"),
];

/** A request as this client composes it: no instructions, nothing stored. */
function request(model: string, input: Body[], extra: Body): Body {
  return {
    model,
    stream: true,
    tool_choice: "auto",
    parallel_tool_calls: true,
    reasoning: { effort: "medium", summary: "auto" },
    store: false,
    include: ["reasoning.encrypted_content"],
    prompt_cache_key: "01a1fb99-c951-7c41-b92a-cad0e4088cda",
    text: { verbosity: "low" },
    client_metadata: { "x-codex-installation-id": "4a5cdb42", session_id: "01a1fb99" },
    input,
    ...extra,
  };
}

/** The items of a streamed answer: this client takes them from the events that end them, and waits for the last event. */
async function answer(route: Route, body: Body, headers: Record<string, string> = {}): Promise<Body[]> {
  const response = await post(gateway(route), "/v1/responses", body, { ...HEADERS, ...headers });
  checkDropped(body, droppedNames(response));
  const messages = await readMessages(response);
  assertEquals(messages.at(-2)?.event, "response.completed");
  return parsed(messages.filter(({ event }) => event === "response.output_item.done")).map(({ item }) => item as Body);
}

/** The search is named: the group of the key does not allow it. */
function checkDropped({ tools = [] }: Body, dropped: string[]): void {
  const hosted = (tools as Body[]).some(({ type }) => type === "web_search");
  assertEquals(dropped.includes("tools.web_search"), hosted, dropped.join());
}

/** An item as this client sends it back: messages and reasoning without their ids. */
function sentBack({ id, status: _, ...item }: Body): Body {
  return item.type === "message" || item.type === "reasoning" ? item : { id, ...item };
}

function textOf(items: Body[]): unknown {
  return (items.findLast(({ type }) => type === "message")?.content as Body[] | undefined)?.[0]?.text;
}

for (const route of routesOfTest()) {
  const { model, keepsReasoning } = route;

  Deno.test(`${model}: Codex's loop with functions, a custom tool and a namespace ends with the results`, async () => {
    const prompt = [
      "Let me see.",
      'call:exec_command {"cmd":"ls","yield_time_ms":1000}',
      customCall(route, { client: "responses", name: "apply_patch", input: "*** Begin Patch" }),
      `call:${nameInNamespace(route, "multi_agent_v1", "spawn_agent")} {}`,
    ];
    const input = [...CONTEXT, message("user", prompt.join("\n"))];
    const first = await answer(route, request(model, input, { tools: TOOLS }));
    // Signatures after the reasoning, or of a call, are separate items.
    assertEquals(first.filter(({ summary }) => (summary as Body[] | undefined)?.length !== 0).map(({ type }) => type), [
      "reasoning",
      "message",
      "function_call",
      "custom_tool_call",
      "function_call",
    ]);
    assert(first.some(({ encrypted_content }) => typeof encrypted_content === "string"));
    const [command, patch, agent] = first.filter(({ call_id }) => call_id !== undefined);
    assertEquals([command?.name, command?.arguments], ["exec_command", '{"cmd":"ls","yield_time_ms":1000}']);
    assertEquals([patch?.name, patch?.input], ["apply_patch", "*** Begin Patch"]);
    assertEquals([agent?.name, agent?.namespace, agent?.arguments], ["spawn_agent", "multi_agent_v1", "{}"]);

    input.push(
      ...first.map(sentBack),
      { type: "function_call_output", call_id: command?.call_id, output: "a.txt" },
      { type: "custom_tool_call_output", call_id: patch?.call_id, output: [{ type: "input_text", text: "Patched" }] },
      { type: "function_call_output", call_id: agent?.call_id, output: "Started" },
    );
    const second = await answer(route, request(model, input, { tools: TOOLS }));
    assertEquals(second[0]?.type, "reasoning");
    assertEquals(textOf(second), "a.txt\nPatched\nStarted");

    input.push(...second.map(sentBack), message("user", "Thanks"));
    assertEquals(textOf(await answer(route, request(model, input, { tools: TOOLS }))), "Thanks");

    const whole = await post(gateway(route), "/v1/responses", request(model, input, { tools: TOOLS }), HEADERS);
    await whole.body?.cancel();
    const forged = await post(
      gateway(route),
      "/v1/responses",
      request(model, tampered(input), { tools: TOOLS }),
      HEADERS,
    );
    const isLost = lostReasoning(forged).some((name) => !lostReasoning(whole).includes(name));
    assertEquals(forged.status === 400 || isLost, keepsReasoning);
    await forged.body?.cancel();
  });

  Deno.test(`${model}: Codex's loop with tools as an item of the input ends with the results`, async () => {
    const exec = { type: "custom", name: "exec", description: "Runs JavaScript.", format: GRAMMAR };
    const added = {
      type: "additional_tools",
      id: "at_01a1fb9a",
      role: "developer",
      tools: [{ type: "namespace", name: "functions", description: "", tools: [exec, COMMAND] }],
    };
    const lite = { "x-openai-internal-codex-responses-lite": "true" };
    const extra = { parallel_tool_calls: false, reasoning: { effort: "low", context: "all_turns" } };
    const name = nameInNamespace(route, "functions", "exec");
    const code = customCall(route, { client: "responses", name, input: 'text("hi")' });
    const input = [added, ...CONTEXT, message("user", code)];
    const first = await answer(route, request(model, input, extra), lite);
    const call = first.find(({ call_id }) => call_id !== undefined);
    assertEquals([call?.type, call?.name, call?.namespace, call?.input], [
      "custom_tool_call",
      "exec",
      "functions",
      'text("hi")',
    ]);
    input.push(
      ...first.map(sentBack),
      { type: "custom_tool_call_output", call_id: call?.call_id, output: [{ type: "input_text", text: "hi" }] },
    );
    assertEquals(textOf(await answer(route, request(model, input, extra), lite)), "hi");
  });
}
