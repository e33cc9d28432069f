/** Tools of one vendor that the client runs, over upstreams of the other protocols. */
import { assert, assertEquals, assertObjectMatch } from "@std/assert";
import type { Json, JsonObject } from "../../../lib/json/mod.ts";
import type { Protocol } from "../../../lib/protocols/canonical/types.ts";
import { model, oneModel, startGateway } from "../../support/gateway.ts";
import { readSse } from "../../support/sse.ts";
import { prompt, WHOLE } from "../../upstream/replies.ts";
import { events, json, startUpstream } from "../../upstream/mod.ts";

type TranslatedProtocol = Exclude<Protocol, "responses">;

const OTHERS: readonly TranslatedProtocol[] = ["chat", "messages", "gemini"];

/** A call of a function, by its arguments, as the upstream of each protocol writes it. */
function callAnswer(protocol: TranslatedProtocol, name: string, args: Json): JsonObject {
  switch (protocol) {
    case "chat": {
      const call = { id: "call_1", type: "function", function: { name, arguments: JSON.stringify(args) } };
      const message = { role: "assistant", content: null, tool_calls: [call] };
      return { ...WHOLE.chat, choices: [{ index: 0, message, finish_reason: "tool_calls" }] };
    }
    case "messages":
      return {
        ...WHOLE.messages,
        content: [{ type: "tool_use", id: "call_1", name, input: args }],
        stop_reason: "tool_use",
      };
    case "gemini": {
      const parts = [{ functionCall: { id: "call_1", name, args } }];
      return { ...WHOLE.gemini, candidates: [{ content: { role: "model", parts }, finishReason: "STOP", index: 0 }] };
    }
  }
}

/** The functions and the text of a request to an upstream. */
function sentTools(protocol: TranslatedProtocol, body: Record<string, never>): JsonObject[] {
  const tools = (body as unknown as { tools: JsonObject[] }).tools ?? [];
  if (protocol === "chat") return tools.map((tool) => tool.function as JsonObject);
  return protocol === "messages" ? tools : tools.flatMap((tool) => tool.functionDeclarations as JsonObject[]);
}

const SHOT = `data:image/png;base64,${btoa("shot")}`;
const CLICK = { type: "click", button: "left", x: 3, y: 4 };

/** A tool, the arguments of its function, the members of the item with a call, and those of its result. */
const CASES: {
  tool: JsonObject;
  name: string;
  args: JsonObject;
  item: JsonObject & { type: string };
  output: JsonObject & { type: string };
  /** A part of the result that the upstream gets. */
  result: string;
}[] = [
  {
    tool: { type: "shell" },
    name: "shell",
    args: { commands: ["ls", "pwd"], timeout_ms: 1000 },
    item: {
      type: "shell_call",
      action: { commands: ["ls", "pwd"], timeout_ms: 1000, max_output_length: null },
      environment: null,
    },
    output: {
      type: "shell_call_output",
      call_id: "call_1",
      output: [{ stdout: "README", stderr: "", outcome: { type: "exit", exit_code: 0 } }],
    },
    result: "exit_code",
  },
  {
    tool: { type: "local_shell" },
    name: "local_shell",
    args: { command: ["ls", "-l"], working_directory: "/tmp" },
    item: {
      type: "local_shell_call",
      action: { type: "exec", command: ["ls", "-l"], env: {}, working_directory: "/tmp" },
    },
    // OpenAI's types have the id of the item here, its guide the call's.
    output: { type: "local_shell_call_output", id: "lsh_call_1", output: '{"stdout":"README"}' },
    result: "README",
  },
  {
    tool: { type: "apply_patch" },
    name: "apply_patch",
    args: { type: "update_file", path: "a.txt", diff: "@@\n-a\n+b\n" },
    item: { type: "apply_patch_call", operation: { type: "update_file", path: "a.txt", diff: "@@\n-a\n+b\n" } },
    output: { type: "apply_patch_call_output", call_id: "call_1", status: "failed", output: "no such file" },
    result: "no such file",
  },
  {
    tool: { type: "computer" },
    name: "computer",
    args: { actions: [CLICK, { type: "wait" }] },
    item: { type: "computer_call", actions: [CLICK, { type: "wait" }], pending_safety_checks: [] },
    output: {
      type: "computer_call_output",
      call_id: "call_1",
      output: { type: "computer_screenshot", image_url: SHOT },
    },
    result: btoa("shot"),
  },
  {
    tool: { type: "computer_use_preview", display_width: 800, display_height: 600, environment: "linux" },
    name: "computer",
    args: { action: CLICK },
    item: { type: "computer_call", action: CLICK, pending_safety_checks: [] },
    output: {
      type: "computer_call_output",
      call_id: "call_1",
      output: { type: "computer_screenshot", image_url: SHOT },
    },
    result: btoa("shot"),
  },
];

for (const protocol of OTHERS) {
  Deno.test(`OpenAI's tools that the client runs work over ${protocol}, in one turn and the next`, async () => {
    for (const { tool, name, args, item, output, result } of CASES) {
      await using server = startUpstream(() => json(callAnswer(protocol, name, args)));
      await using gateway = startGateway(oneModel(protocol, server.url));
      const expected = { ...item, call_id: "call_1", status: "completed" };

      const response = await gateway.ask("responses", prompt("responses", { tools: [tool], tool_choice: tool }));
      const answer = await response.json();
      assertEquals(response.headers.get("x-sluice-dropped"), null, name);
      const [{ id, ...call }] = answer.output;
      assertEquals(call, expected);
      const [sent] = sentTools(protocol, server.requests[0]?.json as never);
      assertEquals(sent?.name, name);
      assert(String(sent?.description).length > 20);

      const items = [{ role: "user", content: "Go" }, { id, ...call }, output];
      const next = await gateway.ask("responses", prompt("responses", { input: items, tools: [tool] }));
      assertEquals(next.headers.get("x-sluice-dropped"), null, name);
      assertEquals(next.status, 200, await next.text());
      const body = server.requests[1]?.body ?? "";
      assert(body.includes(result), `${protocol} ${name}: ${body}`);
      assert(body.includes(`"${name}"`) && !body.includes("_call_output"), body);
    }
  });
}

Deno.test("a streamed call of OpenAI's shell is one item; calls of another form stay calls", async () => {
  let args = "";
  const pieces = () => {
    const chunk = (delta: JsonObject, finish: string | null = null) =>
      `data: ${JSON.stringify({ ...chunkHead, choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
    const call = { index: 0, id: "call_1", type: "function", function: { name: "shell", arguments: "" } };
    const rest = [...args].map((text) => chunk({ tool_calls: [{ index: 0, function: { arguments: text } }] }));
    const opening = chunk({ role: "assistant", content: "So:" });
    return [opening, chunk({ tool_calls: [call] }), ...rest, chunk({}, "tool_calls"), "data: [DONE]\n\n"].join("");
  };
  const chunkHead = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "real-one" };
  await using server = startUpstream(() => events(pieces()));
  await using gateway = startGateway(oneModel("chat", server.url));
  const ask = async (written: string): Promise<JsonObject[]> => {
    args = written;
    const body = prompt("responses", { stream: true, tools: [{ type: "shell" }] });
    const text = await (await gateway.ask("responses", body)).text();
    const done = readSse(text).filter(({ event }) => event === "response.output_item.done");
    return done.map(({ data }) => data.item);
  };
  const [text, call] = await ask('{"commands":["ls"],"timeout_ms":null}');
  assertEquals(text?.type, "message");
  assertObjectMatch(call ?? {}, { type: "shell_call", call_id: "call_1", action: { commands: ["ls"] } });
  for (const other of ['{"command":"ls"}', '{"commands":["l']) {
    assertObjectMatch((await ask(other))[1] ?? {}, { type: "function_call", name: "shell", arguments: other });
  }
});

Deno.test("OpenAI's tools keep apart from functions of the same name, and need what they need", async () => {
  await using server = startUpstream(() => json(callAnswer("chat", "shell_", { commands: ["ls"] })));
  const readsText = model("acme/one", [{ upstream: "one", model: "real-one", protocol: "chat" }], {
    architecture: { input_modalities: ["text"] },
  });
  await using gateway = startGateway({ ...oneModel("chat", server.url), models: [readsText] });
  const shell = {
    type: "shell",
    environment: { type: "local", skills: [{ name: "pdf", path: "/s", description: "d" }] },
  };
  const response = await gateway.ask(
    "responses",
    prompt("responses", {
      tools: [{ type: "function", name: "shell", parameters: { type: "object" } }, shell, { type: "computer" }],
      tool_choice: { type: "allowed_tools", mode: "required", tools: [{ type: "shell" }] },
    }),
  );
  const { output } = await response.json();
  assertEquals(output[0].type, "shell_call");
  // The model reads no images.
  assertEquals(response.headers.get("x-sluice-dropped"), "tools.computer");
  const sent = server.requests[0]?.json;
  assertEquals(sent?.tools.length, 1);
  assert(sent?.tools[0].function.description.includes("pdf (/s): d"));
  assertEquals(sent?.tool_choice, "required");
});

Deno.test("Anthropic's tools that the client runs work over other protocols", async () => {
  const tools: [JsonObject, argument: string][] = [
    [{ type: "bash_20250124", name: "bash" }, "restart"],
    [{ type: "text_editor_20250728", name: "str_replace_based_edit_tool", max_characters: 9_000 }, "insert_text"],
    [{ type: "memory_20250818", name: "memory" }, "old_path"],
    [
      { type: "computer_20251124", name: "computer", display_width_px: 800, display_height_px: 600 },
      "scroll_direction",
    ],
  ];
  for (const protocol of ["chat", "responses", "gemini"] as const) {
    await using server = startUpstream(() => json(WHOLE[protocol]));
    await using gateway = startGateway(oneModel(protocol, server.url));
    const response = await gateway.ask("messages", prompt("messages", { tools: tools.map(([tool]) => tool) }));
    assertEquals(response.status, 200, await response.text());
    assertEquals(response.headers.get("x-sluice-dropped"), null);
    for (const [tool, argument] of tools) {
      assert(server.requests[0]?.body.includes(`"${tool.name}"`) && server.requests[0].body.includes(`"${argument}"`));
    }
  }
});

Deno.test("sluice/echo calls OpenAI's and Anthropic's tools", async () => {
  await using gateway = startGateway({});
  const echo = { model: "sluice/echo" };
  const input = 'call:shell {"commands":["ls"]}';
  const first = await (await gateway.ask("responses", { ...echo, input, tools: [{ type: "shell" }] })).json();
  assertObjectMatch(first.output[0], { type: "shell_call", action: { commands: ["ls"] } });
  const result = {
    type: "shell_call_output",
    call_id: first.output[0].call_id,
    output: [{ stdout: "README", stderr: "", outcome: { type: "timeout" } }],
  };
  const items = [{ role: "user", content: input }, first.output[0], result];
  const second = await (await gateway.ask("responses", { ...echo, input: items, tools: [{ type: "shell" }] })).json();
  assertEquals(second.output[0].content[0].text, JSON.stringify(result.output));
  const bash = { type: "bash_20250124", name: "bash" };
  const messages = [{ role: "user", content: 'call:bash {"command":"ls"}' }];
  const answer = await (await gateway.ask("messages", { ...echo, max_tokens: 50, messages, tools: [bash] })).json();
  assertObjectMatch(answer.content[0], { type: "tool_use", name: "bash", input: { command: "ls" } });
});
