import { assert, assertEquals, assertThrows } from "@std/assert";
import { runToEnd } from "../../../lib/scheduler.ts";
import { UnsupportedParameters } from "../../../lib/protocols/canonical/unsupported_parameters.ts";
import type { Message, Prompt, Reasoning } from "../../../lib/protocols/canonical/types.ts";
import { type Model, modelSchema } from "../../../lib/catalog/model.ts";
import { GatewayError } from "../../../lib/errors.ts";
import { isObject, type Json, type JsonObject, parseJson } from "../../../lib/json/mod.ts";
import type { Dialect, WriteTarget } from "../../../lib/protocols/upstream_codec.ts";
import { listOf, objectsOf } from "../../../lib/protocols/members.ts";
import { responses } from "../../../lib/protocols/responses/mod.ts";
import { responsesUpstream } from "../../../lib/protocols/responses/upstream.ts";
import { promptOf, user } from "../canonical/messages.ts";
import { EVERY_PARAMETER } from "../canonical/every_parameter.ts";

function rowOf(members: JsonObject = {}): Model {
  return modelSchema.parse({
    id: "vendor/model-1",
    created: 0,
    context_length: 1000,
    pricing: { prompt: "0", completion: "0" },
    supported_parameters: EVERY_PARAMETER,
    reasoning: { modes: ["adaptive", "manual"], efforts: ["none", "low", "medium", "high"] },
    targets: [{ upstream: "openai", model: "model-1" }],
    ...members,
  });
}

function targetOf(row: Model = rowOf(), dialect: Partial<Dialect> = {}): WriteTarget {
  return {
    model: "model-1",
    row,
    issuer: "openai",
    dialect: { ...responsesUpstream.dialect, ...dialect },
    dropped: new UnsupportedParameters(),
  };
}

function write(members: Partial<Prompt>, target: WriteTarget = targetOf()): { body: JsonObject; dropped: string[] } {
  const body = runToEnd(responsesUpstream.writePrompt(promptOf([user("Hi")], members), target));
  return { body, dropped: [...target.dropped.names] };
}

function inputOf(messages: Message[], protocol: Prompt["protocol"] = "chat"): { input: Json; dropped: string[] } {
  const { body, dropped } = write({ messages, protocol });
  return { input: body.input ?? null, dropped };
}

/** Members added for other issuers' upstreams, in every request. */
const STATELESS = { store: false, include: ["reasoning.encrypted_content"] };

/** Requests of this protocol's own clients. */
const REQUESTS: Record<string, JsonObject> = {
  ...Object.fromEntries(
    ["coding_agent", "tool_round"].map((name) => {
      const path = new URL(`../../fixtures/responses/${name}.json`, import.meta.url);
      const fixture = parseJson(Deno.readTextFileSync(path));
      assert(isObject(fixture) && isObject(fixture.request));
      return [name, fixture.request];
    }),
  ),
  "every member": {
    model: "vendor/model-1",
    instructions: "Be brief.",
    input: [
      {
        type: "message",
        role: "system",
        content: [{ type: "input_text", text: "Sys", future: 1 }],
        status: "completed",
      },
      {
        type: "message",
        role: "user",
        content: [
          { type: "input_text", text: "Read", cache_control: { type: "ephemeral", ttl: "1h" } },
          { type: "input_file", file_url: "https://e.com/a.pdf", detail: "low" },
          { type: "input_file", filename: "b.pdf", file_data: "data:application/pdf;base64,aGk=" },
          { type: "input_image", image_url: "https://e.com/a.png", detail: "original" },
          { type: "input_audio", input_audio: { data: "aGk=", format: "wav" } },
        ],
      },
      {
        type: "reasoning",
        id: "rs_1",
        status: "completed",
        summary: [{ type: "summary_text", text: "A" }, { type: "summary_text", text: "B\n\nC" }],
        encrypted_content: "gAAA",
      },
      {
        type: "reasoning",
        id: "rs_2",
        summary: [{ type: "summary_text", text: "S" }],
        content: [{ type: "reasoning_text", text: "T", x: 1 }],
        encrypted_content: "gBBB",
      },
      { type: "web_search_call", id: "ws_1", status: "completed", action: { type: "search" } },
      {
        type: "message",
        id: "msg_1",
        role: "assistant",
        status: "completed",
        phase: "commentary",
        content: [
          { type: "output_text", text: "A", annotations: [{ type: "file_path", file_id: "f", index: 0 }] },
          { type: "refusal", refusal: "No" },
        ],
      },
      { type: "message", id: "msg_2", role: "assistant", content: [{ type: "output_text", text: "B" }] },
      {
        type: "function_call",
        id: "fc_1",
        call_id: "c1",
        name: "f",
        arguments: "",
        namespace: "n",
        status: "completed",
      },
      { type: "custom_tool_call", id: "ctc_1", call_id: "c2", name: "g", input: "" },
      { type: "additional_tools", role: "developer", tools: [{ type: "function", name: "late", strict: true }] },
      { type: "function_call_output", call_id: "c1", output: "" },
      {
        type: "custom_tool_call_output",
        call_id: "c2",
        output: [{ type: "input_text", text: "a" }, { type: "input_text", text: "b" }],
      },
      { type: "mcp_approval_response", approval_request_id: "m", approve: true },
      { type: "message", role: "user", content: [{ type: "input_text", text: "Go" }] },
      { type: "message", role: "user", content: [{ type: "input_text", text: "on" }] },
      { type: "compaction_trigger" },
    ],
    tools: [
      { type: "function", name: "f", description: "F", parameters: { type: "object" }, async: true },
      {
        type: "namespace",
        name: "n",
        description: "N",
        tools: [{ type: "function", name: "f" }, { type: "custom", name: "g", format: { type: "text" } }, {
          type: "web_search",
        }],
      },
      { type: "namespace", name: "m", description: "M", tools: [{ type: "custom", name: "h", defer_loading: true }] },
      { type: "mcp", server_label: "s", server_url: "https://e.com", require_approval: "never" },
    ],
    tool_choice: {
      type: "allowed_tools",
      mode: "required",
      tools: [{ type: "function", name: "f" }, { type: "custom", name: "g" }],
    },
    parallel_tool_calls: false,
    max_output_tokens: 9,
    max_tool_calls: 3,
    temperature: 0,
    top_p: 0.5,
    presence_penalty: 0.5,
    frequency_penalty: -0.5,
    reasoning: { effort: "max", summary: "detailed", context: "all_turns", max_tokens: 100, enabled: false },
    text: { verbosity: "low", format: { type: "json_schema", name: "x", schema: {}, description: "d", strict: false } },
    include: ["reasoning.encrypted_content", "file_search_call.results"],
    stream: true,
    stream_options: { include_obfuscation: false },
    truncation: "auto",
    store: true,
    metadata: { a: "b" },
    service_tier: "flex",
    user: "u",
    safety_identifier: "s",
    prompt_cache_key: "k",
    prompt_cache_options: { mode: "explicit" },
    context_management: [{ type: "compaction" }],
    future_member: { x: [1, null] },
  },
  "hosted choice": {
    model: "vendor/model-1",
    input: [{ type: "message", role: "user", content: [{ type: "input_text", text: "Hi" }] }],
    tool_choice: { type: "mcp", server_label: "s" },
    reasoning: { summary: "auto" },
    safety_identifier: "s",
    text: { format: { type: "json_object" } },
  },
};

/** One notation for values that have several. */
function normalize(body: JsonObject): JsonObject {
  const { provider: _provider, models: _models, ...kept } = withoutNulls(body);
  const { reasoning, include, stream, ...others } = kept;
  const requested = isObject(reasoning) ? withoutNulls(reasoning) : {};
  return {
    ...others,
    model: "model-1",
    input: typeof kept.input === "string" ? [messageOf("user", kept.input)] : objectsOf(kept.input).map(normalizeItem),
    ...(listOf(include).length > 0 && { include: [...listOf(include)] }),
    ...(Object.keys(requested).length > 0 && { reasoning: requested }),
    ...(stream === true && { stream }),
  };
}

function withoutNulls(value: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null));
}

function messageOf(role: string, text: string): JsonObject {
  return { type: "message", role, content: [{ type: role === "assistant" ? "output_text" : "input_text", text }] };
}

function normalizeItem(item: JsonObject): JsonObject {
  if (item.type === "reasoning") return withoutNulls(item);
  if (typeof item.content === "string") return { ...item, ...messageOf(String(item.role), item.content) };
  return item.content === undefined ? item : { ...item, content: objectsOf(item.content).map(normalizePart) };
}

function normalizePart(part: JsonObject): JsonObject {
  const { annotations, ...others } = part;
  if (typeof part.image_url === "string" && part.image_url.startsWith("data:")) {
    const [head = "", data = ""] = part.image_url.split(",");
    others.image_url = `${head.toLowerCase()},${data}`;
  }
  return { ...others, ...(listOf(annotations).length > 0 && { annotations }) };
}

Deno.test("writePrompt() reverses readPrompt() for our own clients", async (t) => {
  for (const [name, request] of Object.entries(REQUESTS)) {
    await t.step(name, () => {
      assert(responses.schema.safeParse(request).success, "the schema takes it");
      const prompt = responses.readPrompt(request);
      const target = targetOf();
      const written = runToEnd(responsesUpstream.writePrompt(prompt, target));
      assertEquals(written, normalize(request));
      assertEquals(target.dropped.names, []);
      const { provider: _provider, fallbacks: _fallbacks, ...again } = prompt;
      assertEquals(responses.readPrompt({ ...written, model: prompt.model }), again);
      assertEquals(JSON.stringify(runToEnd(responsesUpstream.writePrompt(prompt, target))), JSON.stringify(written));
    });
  }
});

Deno.test("unsigned reasoning returns to upstreams that require it", () => {
  const { body } = write({
    messages: [{ role: "assistant", blocks: [{ type: "reasoning", text: "Hm" }] }],
  }, targetOf(rowOf(), { unsignedReasoning: true }));
  assertEquals(body.input, [{ type: "reasoning", summary: [], content: [{ type: "reasoning_text", text: "Hm" }] }]);
});

Deno.test("writePrompt() writes a file as data, address or text by its type", () => {
  const bytes = (mediaType: string) => ({ kind: "bytes" as const, mediaType, base64: "aGk=" });
  const cases: [Message["blocks"][number], JsonObject][] = [
    [{ type: "media", media: bytes("application/pdf"), name: "a.pdf" }, {
      type: "input_file",
      filename: "a.pdf",
      file_data: "data:application/pdf;base64,aGk=",
    }],
    [{ type: "media", media: bytes("application/pdf") }, {
      type: "input_file",
      filename: "file.pdf",
      file_data: "data:application/pdf;base64,aGk=",
    }],
    [{ type: "media", media: { kind: "url", url: "https://e.com/a.pdf", mediaType: "application/pdf" } }, {
      type: "input_file",
      file_url: "https://e.com/a.pdf",
    }],
    [{ type: "media", media: bytes("text/plain"), name: "Notes" }, { type: "input_text", text: "Notes\n\nhi" }],
    [{ type: "media", media: { ...bytes("text/plain"), base64: "/w==" } }, {
      type: "input_file",
      filename: "file",
      file_data: "data:text/plain;base64,/w==",
    }],
  ];
  for (const [block, part] of cases) {
    assertEquals(inputOf([{ role: "user", blocks: [block] }]).input, [
      { type: "message", role: "user", content: [part] },
    ]);
  }
  const audio: Message = { role: "user", blocks: [{ type: "media", media: bytes("audio/wav") }] };
  assertEquals(assertThrows(() => inputOf([audio]), GatewayError).kind, "invalid");
});

Deno.test("reasoning options become a supported effort", () => {
  const cases: [Prompt["protocol"], Reasoning, Json | undefined, string[]?][] = [
    ["chat", {}, { summary: "auto" }],
    ["chat", { effort: "low" }, { effort: "low", summary: "auto" }],
    ["chat", { effort: "low", display: "omitted" }, { effort: "low" }],
    ["chat", { effort: "max" }, { effort: "high", summary: "auto" }, ["reasoning_effort"]],
    ["chat", { effort: "minimal" }, { effort: "low", summary: "auto" }, ["reasoning_effort"]],
    ["chat", { effort: "none" }, { effort: "none" }],
    ["messages", { mode: "off" }, { effort: "none" }],
    ["messages", { mode: "adaptive" }, { effort: "medium", summary: "auto" }],
    ["messages", { mode: "adaptive", display: "omitted" }, { effort: "medium" }],
    ["messages", { mode: "adaptive", effort: "medium", display: "summarized" }, { effort: "medium", summary: "auto" }],
    ["messages", { effort: "medium" }, { effort: "medium" }],
    ["messages", { mode: "manual", budgetTokens: 1024 }, { effort: "low", summary: "auto" }],
    ["messages", { mode: "manual", budgetTokens: 2048 }, { effort: "medium", summary: "auto" }],
    ["messages", { mode: "manual", budgetTokens: 8192 }, { effort: "high", summary: "auto" }],
    ["messages", { mode: "manual", budgetTokens: 99_999 }, { effort: "high", summary: "auto" }],
  ];
  for (const [protocol, reasoning, wanted, names = []] of cases) {
    const { body, dropped } = write({ protocol, reasoning });
    assertEquals([body.reasoning, dropped], [wanted, names], JSON.stringify(reasoning));
  }
  const never = targetOf(rowOf({ reasoning: { modes: ["adaptive"], efforts: ["medium", "high"] } }));
  const { body, dropped } = write({ protocol: "messages", reasoning: { mode: "off" } }, never);
  assertEquals([body.reasoning, dropped], [{ effort: "medium" }, ["thinking.type"]]);
});

Deno.test("a model without reasoning gets neither an effort nor a request for tokens", () => {
  const target = targetOf(rowOf({ reasoning: undefined }));
  const { body, dropped } = write({ reasoning: { effort: "low" } }, target);
  assertEquals([body.reasoning, body.include, body.store, dropped], [undefined, undefined, false, [
    "reasoning_effort",
  ]]);
});

Deno.test("writePrompt() names the parameters that the model does not support", () => {
  const { body, dropped } = write({
    sampling: { temperature: 1, topP: 1 },
    unknownMembers: { from: "responses", members: { text: { verbosity: "low" } } },
  }, targetOf(rowOf({ supported_parameters: ["tools"] })));
  assertEquals(body, { model: "model-1", input: [messageOf("user", "Hi")], ...STATELESS });
  assertEquals(dropped, ["temperature", "top_p", "verbosity"]);
});

Deno.test("long user ids are hashed deterministically", () => {
  const user = "x".repeat(65);
  const [one, two] = [write({ user }).body.safety_identifier, write({ user }).body.safety_identifier];
  assert(typeof one === "string" && /^[0-9a-f]{64}$/.test(one));
  assertEquals(one, two);
  assert(write({ user: `${user}y` }).body.safety_identifier !== one);
});
