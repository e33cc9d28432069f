import { assertEquals, assertThrows } from "@std/assert";
import type { ContentBlock, Prompt } from "../../../lib/protocols/canonical/types.ts";
import { GatewayError } from "../../../lib/errors.ts";
import { isObject, type Json, type JsonObject, parseJson } from "../../../lib/json/mod.ts";
import { messages } from "../../../lib/protocols/messages/mod.ts";
import { checkBody } from "../../../lib/protocols/fields.ts";

Deno.test("readPrompt() keeps a member named __proto__ as a member", () => {
  const body = parseJson(
    '{"model":"a/b","max_tokens":1,"messages":[{"role":"user","content":"x"}],"__proto__":{"x":1}}',
  );
  if (!isObject(body)) throw new TypeError("Expected an object");
  const members = messages.readPrompt(body).unknownMembers?.members ?? {};
  assertEquals(Object.getOwnPropertyDescriptor(members, "__proto__")?.value, { x: 1 });
  assertEquals(Object.getPrototypeOf(members), Object.prototype);
});

Deno.test("readPrompt() takes max_tokens 0, which only fills the prompt cache", () => {
  assertEquals(read(base({ max_tokens: 0 })).maxTokens, 0);
});

Deno.test("readPrompt() drops empty text unless the message has nothing else", () => {
  const empty = { type: "text", text: "" };
  const cases: [JsonObject["content"], ContentBlock[]][] = [
    [[empty, { type: "text", text: "a" }, empty], [{ type: "text", text: "a" }]],
    [[empty, empty], [{ type: "text", text: "" }]],
    [[], []],
    [[{ type: "tool_result", tool_use_id: "t", content: [empty] }], [{ type: "tool_result", callId: "t", blocks: [] }]],
  ];
  for (const [content, expected] of cases) {
    assertEquals(read(base({ messages: [{ role: "user", content }] })).messages[0]?.blocks, expected);
  }
  for (const system of ["", null, [empty], []]) assertEquals(read(base({ system })).messages.length, 1);
});

Deno.test("readPrompt() reads fallback models from both members, and leaves other values to the vendor", () => {
  const fallbacksOf = (members: JsonObject): [string[] | undefined, Json | undefined] => {
    const { fallbacks, unknownMembers } = read({
      model: "m",
      max_tokens: 1,
      messages: [{ role: "user", content: "x" }],
      ...members,
    });
    return [fallbacks, unknownMembers?.members.fallbacks];
  };
  const cases: [JsonObject, string[] | undefined, Json | undefined][] = [
    [{ fallbacks: [{ model: "a/b" }, { model: "c/d" }] }, ["a/b", "c/d"], undefined],
    [{ models: ["e/f"], fallbacks: [{ model: "a/b" }] }, ["e/f", "a/b"], undefined],
    [{ models: ["e/f"] }, ["e/f"], undefined],
    [{ fallbacks: null }, undefined, null],
    [{ fallbacks: { mode: "vendor" } }, undefined, { mode: "vendor" }],
  ];
  for (const [members, models, rest] of cases) assertEquals(fallbacksOf(members), [models, rest]);
  const error = assertThrows(() => fallbacksOf({ fallbacks: [{ model: "a/b", max_tokens: 5 }] }), GatewayError);
  assertEquals([error.kind, error.param], ["invalid", "fallbacks[0].max_tokens"]);
});

Deno.test("readPrompt() rejects unsupported members that change the meaning", () => {
  const user = (...content: JsonObject[]) => ({ messages: [{ role: "user", content }] });
  const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } };
  const mark = { cache_control: { type: "ephemeral" } };
  const marked = { type: "text", text: "a", ...mark };
  const cases: [JsonObject, string | undefined, string][] = [
    [
      { max_tokens: 2048, thinking: { type: "enabled", budget_tokens: 2048 } },
      "thinking.budget_tokens",
      "Expected thinking.budget_tokens (2048) to be less than max_tokens (2048)",
    ],
    [user({ type: "container_upload", file_id: "file_1" }), "messages[0].content[0].file_id", "Cannot use a file id"],
    [
      user({ type: "image", source: { type: "file", file_id: "file_1" } }),
      "messages[0].content[0].source.file_id",
      "Cannot use a file id",
    ],
    [
      user({ type: "document", source: { type: "file", file_id: "file_1" } }),
      "messages[0].content[0].source.file_id",
      "Cannot use a file id",
    ],
    [
      user({ type: "image", source: { type: "base64", media_type: "image/png", data: "A*A" } }),
      "messages[0].content[0].source.data",
      "Cannot read messages[0].content[0].source.data: Expected base64",
    ],
    [
      user({ type: "image", source: { type: "url", url: "data:image/png" } }),
      "messages[0].content[0].source.url",
      "Cannot read messages[0].content[0].source.url: Expected a comma in the data URL",
    ],
    [
      user({ type: "text", text: "", ...mark }),
      "messages[0].content[0].cache_control",
      "cache_control cannot be set for empty text blocks",
    ],
    [user(...Array<JsonObject>(65).fill(image)), "messages", "Too many images: 65, at most 64 are allowed"],
    [
      {
        ...user({ type: "tool_result", tool_use_id: "t", content: [marked], ...mark }, {
          type: "search_result",
          ...mark,
        }),
        system: [marked],
        tools: [{ type: "web_search_20250305", name: "web_search", ...mark }],
      },
      undefined,
      "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    ],
    [
      {
        output_config: { format: { type: "json_schema", schema: {} } },
        output_format: { type: "json_schema", schema: {} },
      },
      "output_format",
      "Cannot use both output_format and output_config.format",
    ],
  ];
  for (const [members, param, message] of cases) {
    const error = assertThrows(() => read(base(members)), GatewayError, message);
    assertEquals([error.kind, error.param], ["invalid", param], message);
  }
});

Deno.test("readPrompt() accepts exactly the maximum of images and cache marks", () => {
  const image = { type: "image", source: { type: "url", url: "https://example.test/a.png" } };
  const marked = { type: "text", text: "a", cache_control: { type: "ephemeral" } };
  const content = [...Array<JsonObject>(64).fill(image), ...Array<JsonObject>(4).fill(marked)];
  assertEquals(read(base({ messages: [{ role: "user", content }] })).messages[0]?.blocks.length, 68);
});

Deno.test("readPrompt() does not take a raw number for an object", () => {
  const bodies = [
    '{"model":"a/b","max_tokens":1,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":1e400}]}]}',
    '{"model":"a/b","max_tokens":1,"messages":[{"role":"user","content":"x"}],"tools":[{"name":"f","input_schema":1e400}]}',
  ];
  for (const text of bodies) {
    const body = parseJson(text);
    if (!isObject(body)) throw new TypeError("Expected an object");
    assertThrows(() => messages.readPrompt(body), GatewayError, "expected an object");
  }
});

function base(members: JsonObject): JsonObject {
  return { model: "a/b", max_tokens: 4096, messages: [{ role: "user", content: "x" }], ...members };
}

/** Checks and reads, as the pipeline does. */
function read(body: JsonObject): Prompt {
  checkBody(messages.schema, body);
  return messages.readPrompt(body);
}
