import { assertEquals, assertThrows } from "@std/assert";
import type { Prompt } from "../../../lib/protocols/canonical/types.ts";
import { GatewayError } from "../../../lib/errors.ts";
import { type JsonObject, parseJson } from "../../../lib/json/mod.ts";
import { checkBody } from "../../../lib/protocols/fields.ts";
import { responses } from "../../../lib/protocols/responses/mod.ts";
import codingAgent from "../../fixtures/responses/coding_agent.json" with { type: "json" };
import toolRound from "../../fixtures/responses/tool_round.json" with { type: "json" };

/** Reads a body as the pipeline does. */
function read(members: JsonObject): Prompt {
  const body = { model: "a/b", input: "Hi", ...members };
  checkBody(responses.schema, body);
  return responses.readPrompt(body);
}

function refuse(members: JsonObject): GatewayError {
  const error = assertThrows(() => read(members), GatewayError, undefined, JSON.stringify(members));
  assertEquals(error.kind, "invalid");
  return error;
}

const kept = (members: JsonObject) => ({ from: "responses", members });

Deno.test("readPrompt() reads whole requests", () => {
  for (const { request, prompt } of [codingAgent, toolRound]) {
    checkBody(responses.schema, request);
    assertEquals(responses.readPrompt(request), prompt as Prompt);
  }
});

Deno.test("readPrompt() reads null as absent", () => {
  const names = [
    ...["instructions", "stream", "max_output_tokens", "temperature", "top_p", "top_logprobs", "reasoning", "text"],
    ...["tools", "tool_choice", "parallel_tool_calls", "include", "truncation", "provider", "models", "user"],
    ...["previous_response_id", "conversation", "prompt", "background", "presence_penalty", "frequency_penalty"],
  ];
  assertEquals(read(Object.fromEntries(names.map((name) => [name, null]))), read({}));
});

Deno.test("readPrompt() reads each kind of content part", () => {
  const cases: [part: JsonObject, block: JsonObject][] = [
    [{ type: "input_text", text: "a", later: 1 }, { type: "text", text: "a", unknownMembers: kept({ later: 1 }) }],
    [{ type: "text", text: "" }, { type: "text", text: "" }],
    [
      { type: "input_text", text: "a", cache_control: { type: "ephemeral", ttl: "1h" } },
      { type: "text", text: "a", cache: { ttl: "1h" } },
    ],
    [
      { type: "input_text", text: "a", cache_control: { type: "ephemeral" }, prompt_cache_breakpoint: {} },
      { type: "text", text: "a", cache: { ttl: "5m" }, unknownMembers: kept({ prompt_cache_breakpoint: {} }) },
    ],
    [
      { type: "output_text", text: "a", annotations: [{ type: "url_citation", url: "https://e.com" }] },
      {
        type: "text",
        text: "a",
        citations: [{ from: "responses", value: { type: "url_citation", url: "https://e.com" } }],
      },
    ],
    [{ type: "refusal", refusal: "No", later: 1 }, { type: "refusal", text: "No", unknownMembers: kept({ later: 1 }) }],
    [
      { type: "input_image", image_url: "https://e.com/a.png", detail: "low" },
      { type: "media", media: { kind: "url", url: "https://e.com/a.png" }, unknownMembers: kept({ detail: "low" }) },
    ],
    [
      { type: "input_image", image_url: "DATA:image/jpg;base64,aG k=" },
      { type: "media", media: { kind: "bytes", mediaType: "image/jpeg", base64: "aGk=" } },
    ],
    [
      { type: "input_file", filename: "a.pdf", file_data: "data:application/pdf;base64,aGk=" },
      { type: "media", media: { kind: "bytes", mediaType: "application/pdf", base64: "aGk=" }, name: "a.pdf" },
    ],
    [
      { type: "input_file", filename: "a.PDF", file_data: "aGk=" },
      { type: "media", media: { kind: "bytes", mediaType: "application/pdf", base64: "aGk=" }, name: "a.PDF" },
    ],
    [
      { type: "input_file", file_data: "aGk=" },
      { type: "media", media: { kind: "bytes", mediaType: "application/octet-stream", base64: "aGk=" } },
    ],
    [
      { type: "input_file", file_url: "https://e.com/x/a.pdf?b=/c" },
      { type: "media", media: { kind: "url", url: "https://e.com/x/a.pdf?b=/c" }, name: "a.pdf" },
    ],
    [
      { type: "input_file", file_url: "https://e.com/", filename: "b.pdf" },
      { type: "media", media: { kind: "url", url: "https://e.com/" }, name: "b.pdf" },
    ],
    [
      { type: "input_file", file_url: "https://e.com/" },
      { type: "media", media: { kind: "url", url: "https://e.com/" }, name: "file" },
    ],
    [
      { type: "input_audio", input_audio: { data: "", format: "wav" } },
      {
        type: "vendor_specific",
        from: "responses",
        value: { type: "input_audio", input_audio: { data: "", format: "wav" } },
      },
    ],
  ];
  for (const [part, block] of cases) {
    const [message] = read({ input: [{ role: "user", content: [part] }] }).messages;
    assertEquals<unknown>(message?.blocks, [block]);
    const [result] = read({ input: [{ type: "function_call_output", call_id: "c", output: [part] }] }).messages;
    assertEquals<unknown>(result?.blocks, [{ type: "tool_result", callId: "c", blocks: [block] }]);
  }
});

Deno.test("readPrompt() reads reasoning with its token", () => {
  const envelope = (members: JsonObject) => `sluice1.${btoa(JSON.stringify(members)).replaceAll("=", "")}`;
  const parts = (...texts: string[]) => texts.map((text) => ({ type: "summary_text", text }));
  const raw = [{ type: "reasoning_text", text: "raw" }];
  const cases: [item: JsonObject, block: JsonObject][] = [
    [{ id: "rs_1", summary: [] }, { text: "", unknownMembers: kept({ id: "rs_1" }) }],
    [{ summary: parts("Hm") }, { text: "Hm" }],
    [{ summary: parts("a", "b") }, { text: "a\n\nb", unknownMembers: kept({ summary: parts("a", "b") }) }],
    [{ summary: [], content: raw }, { text: "raw", unknownMembers: kept({ summary: [], content: raw }) }],
    [{ summary: parts("a"), content: raw }, {
      text: "raw",
      unknownMembers: kept({ summary: parts("a"), content: raw }),
    }],
    [{ summary: parts("a"), status: "completed" }, { text: "a", unknownMembers: kept({ status: "completed" }) }],
    [
      { id: "rs_1", summary: parts("a"), encrypted_content: "gAAA" },
      { text: "a", signature: { issuer: "openai", value: "gAAA", id: "rs_1" } },
    ],
    [
      { summary: [], encrypted_content: "gAAA" },
      { text: "", hidden: true, signature: { issuer: "openai", value: "gAAA" } },
    ],
    [{ summary: [], encrypted_content: "" }, { text: "" }],
    [
      { id: "rs_1", summary: [], encrypted_content: envelope({ issuer: "openai", value: "gAAA", id: "rs_up" }) },
      {
        text: "",
        hidden: true,
        signature: { issuer: "openai", value: "gAAA", id: "rs_up" },
        unknownMembers: kept({ id: "rs_1" }),
      },
    ],
    [
      { id: "rs_1", summary: parts("Hm"), encrypted_content: envelope({ issuer: "anthropic", value: "c2ln" }) },
      { text: "Hm", signature: { issuer: "anthropic", value: "c2ln" }, unknownMembers: kept({ id: "rs_1" }) },
    ],
    [
      { summary: [], encrypted_content: envelope({ issuer: "anthropic", value: "c2ln" }) },
      { text: "", signature: { issuer: "anthropic", value: "c2ln" } },
    ],
    [
      { summary: [], encrypted_content: envelope({ issuer: "anthropic#hidden", value: "cmVk" }) },
      { text: "", hidden: true, signature: { issuer: "anthropic", value: "cmVk" } },
    ],
  ];
  for (const [item, block] of cases) {
    const [message] = read({ input: [{ type: "reasoning", ...item }] }).messages;
    assertEquals<unknown>(message?.blocks, [{ type: "reasoning", ...block }]);
  }
});

Deno.test("readPrompt() reads reasoning options", () => {
  const cases: [members: JsonObject, reasoning: JsonObject | undefined][] = [
    [{ reasoning: {} }, undefined],
    [{ reasoning: { effort: null, summary: null } }, undefined],
    [{ reasoning: { effort: "none" } }, { effort: "none" }],
    [{ reasoning: { summary: "auto" } }, { display: "summarized" }],
    [{ reasoning: { summary: "concise" } }, { display: "summarized", unknownMembers: kept({ summary: "concise" }) }],
    [{ reasoning: { generate_summary: "auto" } }, { display: "summarized" }],
    [{ reasoning: { mode: "pro", context: null } }, { unknownMembers: kept({ mode: "pro" }) }],
    [{ reasoning: { max_tokens: 2000 } }, { mode: "manual", budgetTokens: 2000 }],
    [{ reasoning: { enabled: false } }, { mode: "off" }],
    [{ reasoning: { enabled: true } }, { effort: "medium" }],
    [{ reasoning: { enabled: true, effort: "high" } }, { effort: "high" }],
    [{ include: ["reasoning.encrypted_content"] }, { encrypted: true }],
  ];
  for (const [members, reasoning] of cases) assertEquals<unknown>(read(members).reasoning, reasoning);
});

Deno.test("readPrompt() reads tools and the tool choice", () => {
  const named = (name: string) => ({ type: "function", name });
  const cases: [tool_choice: JsonObject | string, toolChoice: JsonObject][] = [
    ["auto", { type: "auto" }],
    ["none", { type: "none" }],
    ["required", { type: "required" }],
    [named("f"), { type: "tool", name: "f" }],
    [{ type: "custom", name: "c" }, { type: "tool", name: "c", custom: true }],
    [{ type: "allowed_tools", mode: "required", tools: [named("f"), { type: "custom", name: "c" }] }, {
      type: "allowed",
      mode: "required",
      names: ["f", "c"],
    }],
    ...[
      { type: "web_search" },
      { type: "mcp", server_label: "s", name: null },
      { type: "allowed_tools", mode: "auto", tools: [named("f"), { type: "image_generation" }] },
      { type: "allowed_tools", mode: "auto", tools: [{ type: "mcp", server_label: "s", name: "t" }] },
    ].map((value): [JsonObject, JsonObject] => [value, { type: "vendor_specific", from: "responses", value }]),
  ];
  for (const [tool_choice, toolChoice] of cases) {
    assertEquals<unknown>(read({ tool_choice }).toolChoice, toolChoice);
  }

  const { tools } = read({
    tools: [
      { type: "function", name: "a", description: null, parameters: null, strict: null },
      { type: "function", name: "b", cache_control: { type: "ephemeral" }, output_schema: {} },
      { type: "namespace", name: "n", tools: [{ type: "function", name: "c" }, { type: "mcp", server_label: "s" }] },
    ],
  });
  assertEquals<unknown>(tools, [
    { type: "function", name: "a" },
    { type: "function", name: "b", cache: { ttl: "5m" }, unknownMembers: kept({ output_schema: {} }) },
    { type: "function", name: "c", namespace: "n" },
    { type: "hosted", from: "responses", value: { type: "mcp", server_label: "s" } },
  ]);
});

Deno.test("readPrompt() reads instructions as the first system message", () => {
  const cases: [instructions: JsonObject[] | string, blocks: JsonObject[]][] = [
    ["Be kind", [{ type: "text", text: "Be kind" }]],
    [[{ role: "developer", content: "a" }, { role: "system", content: [{ type: "input_text", text: "b" }] }], [
      { type: "text", text: "a" },
      { type: "text", text: "b" },
    ]],
  ];
  for (const [instructions, blocks] of cases) {
    const { messages } = read({ instructions, input: [{ role: "system", content: "later" }] });
    assertEquals(messages.map(({ role }) => role), ["system", "system"]);
    assertEquals<unknown>(messages[0]?.blocks, blocks);
  }
  for (const instructions of ["", []]) assertEquals(read({ instructions }).messages.length, 1);
});

Deno.test("readPrompt() keeps the spelling of numbers in unknown members", () => {
  const body = parseJson(
    '{"model":"a/b","input":"Hi","tools":[{"type":"function","name":"f","parameters":{"maximum":12345678901234567890}}]}',
  ) as JsonObject;
  checkBody(responses.schema, body);
  assertEquals(JSON.stringify(responses.readPrompt(body).tools), JSON.stringify(body.tools));
});

Deno.test("readPrompt() rejects and names unsupported members", () => {
  const part = (content: JsonObject) => ({ input: [{ role: "user", content: [content] }] });
  const cases: [members: JsonObject, param: string, message: RegExp][] = [
    [{ previous_response_id: "resp_1" }, "previous_response_id", /stateless/],
    [{ conversation: "conv_1" }, "conversation", /stateless/],
    [{ conversation: { id: "conv_1" } }, "conversation", /stateless/],
    [{ prompt: { id: "p" } }, "prompt", /stateless/],
    [{ background: true }, "background", /background/],
    [{ input: [{ role: "user", content: "a" }, { type: "item_reference", id: "x" }] }, "input[1]", /stateless/],
    [{ input: [{ role: "user", content: "a" }, { id: "x" }] }, "input[1]", /stateless/],
    [{ instructions: [{ type: "reasoning", summary: [] }] }, "instructions[0].type", /only messages/],
    [part({ type: "input_image", file_id: "file-1" }), "input[0].content[0].file_id", /one vendor's account/],
    [part({ type: "input_file", file_id: "file-1" }), "input[0].content[0].file_id", /one vendor's account/],
    [part({ type: "input_image" }), "input[0].content[0]", /Expected image_url/],
    [part({ type: "input_file", filename: "a" }), "input[0].content[0]", /Expected file_data or file_url/],
    [part({ type: "input_image", image_url: "data:image/png;base64" }), "input[0].content[0].image_url", /comma/],
    [part({ type: "input_image", image_url: "data:image/png;base64,*" }), "input[0].content[0].image_url", /base64/],
    [part({ type: "input_file", file_data: "not base64!" }), "input[0].content[0].file_data", /base64/],
    [
      {
        input: [{
          type: "function_call_output",
          call_id: "c",
          output: [{ type: "input_image", image_url: "data:," }, { type: "input_image", file_id: "f" }],
        }],
      },
      "input[0].output[1].file_id",
      /file id/,
    ],
    [
      {
        input: Array(65).fill({
          role: "user",
          content: [{ type: "input_image", image_url: "https://e.com/a.png" }],
        }),
      },
      "input",
      /images: 65/,
    ],
    [
      {
        tools: Array(200).fill({ type: "web_search" }),
        input: [
          { type: "additional_tools", tools: Array(57).fill({ type: "web_search" }) },
          { role: "user", content: "a" },
        ],
      },
      "tools",
      /tools: 257/,
    ],
  ];
  for (const [members, param, message] of cases) {
    const error = refuse(members);
    assertEquals([error.param, message.test(error.message)], [param, true], error.message);
  }
});
