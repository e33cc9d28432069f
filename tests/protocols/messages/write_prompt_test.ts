import { assertEquals, assertThrows } from "@std/assert";
import type { ContentBlock, Prompt, Tool } from "../../../lib/protocols/canonical/types.ts";
import { GatewayError } from "../../../lib/errors.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { messageOf, write } from "./upstream_targets.ts";

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ";
const TOOL: Tool = { type: "function", name: "f", parameters: { type: "object" } };
Deno.test("writePrompt() writes every kind of block", () => {
  const signed = (value: string, id?: string) => ({ issuer: "anthropic", value, ...(id !== undefined && { id }) });
  const cases: [block: ContentBlock, written: JsonObject][] = [
    [{ type: "text", text: "a", cache: { ttl: "5m" } }, {
      type: "text",
      text: "a",
      cache_control: { type: "ephemeral" },
    }],
    [{ type: "text", text: "a", cache: { ttl: "1h" } }, {
      type: "text",
      text: "a",
      cache_control: { type: "ephemeral", ttl: "1h" },
    }],
    [{ type: "refusal", text: "No." }, { type: "text", text: "No." }],
    [{ type: "reasoning", text: "Hm.", signature: signed("s") }, { type: "thinking", thinking: "Hm.", signature: "s" }],
    [{ type: "reasoning", text: "", hidden: true, signature: signed("s") }, {
      type: "thinking",
      thinking: "",
      signature: "s",
    }],
    [{ type: "reasoning", text: "", hidden: true, signature: signed("s", "redacted") }, {
      type: "redacted_thinking",
      data: "s",
    }],
    [{ type: "reasoning", text: "Hm." }, { type: "thinking", thinking: "Hm.", signature: "" }],
    [{ type: "tool_call", id: "c", name: "f", arguments: "" }, { type: "tool_use", id: "c", name: "f", input: {} }],
    [{ type: "tool_call", id: "c", name: "f", arguments: '{"a":' }, {
      type: "tool_use",
      id: "c",
      name: "f",
      input: { _raw: '{"a":' },
    }],
    [{ type: "tool_call", id: "c", name: "f", arguments: "[1]" }, {
      type: "tool_use",
      id: "c",
      name: "f",
      input: { _raw: "[1]" },
    }],
    [
      {
        type: "tool_result",
        callId: "c",
        blocks: [{ type: "text", text: "a" }, { type: "media", media: bytes(PNG, "image/png") }],
        isError: true,
        cache: { ttl: "5m" },
      },
      {
        type: "tool_result",
        tool_use_id: "c",
        content: [
          { type: "text", text: "a" },
          { type: "image", source: { type: "base64", media_type: "image/png", data: PNG } },
        ],
        is_error: true,
        cache_control: { type: "ephemeral" },
      },
    ],
    [{ type: "vendor_specific", from: "messages", value: { type: "search_result", new: [1] } }, {
      type: "search_result",
      new: [1],
    }],
  ];
  for (const [block, written] of cases) {
    const { body } = write({ messages: [messageOf("assistant", { type: "text", text: "before" }, block)] });
    const content = [{ type: "text", text: "before" }, written];
    assertEquals<unknown>(body.messages, [{ role: "assistant", content }], JSON.stringify(block));
  }
});

Deno.test("writePrompt() writes media by type", () => {
  const source = (type: string, media_type: string, data: string) => ({ type, media_type, data });
  const cases: [block: Omit<Extract<ContentBlock, { type: "media" }>, "type">, written: JsonObject][] = [
    [{ media: bytes(PNG, "image/jpeg") }, { type: "image", source: source("base64", "image/png", PNG) }],
    [{ media: bytes("/9j/4AAQ", "image/png") }, { type: "image", source: source("base64", "image/jpeg", "/9j/4AAQ") }],
    [{ media: bytes("R0lGODlhAQ==", "image/gif") }, {
      type: "image",
      source: source("base64", "image/gif", "R0lGODlhAQ=="),
    }],
    [{ media: bytes(btoa("RIFF\x10\x00\x00\x00WEBPVP8 "), "image/png") }, {
      type: "image",
      source: source("base64", "image/webp", btoa("RIFF\x10\x00\x00\x00WEBPVP8 ")),
    }],
    [{ media: bytes("JVBERi0xLjc=", "application/octet-stream"), name: "a.pdf" }, {
      type: "document",
      source: source("base64", "application/pdf", "JVBERi0xLjc="),
      title: "a.pdf",
    }],
    [{ media: bytes(btoa("a,b"), "text/csv"), name: "a.csv" }, {
      type: "document",
      source: source("text", "text/plain", "a,b"),
      title: "a.csv",
    }],
    [{ media: bytes(btoa("%PDF- is text"), "text/plain") }, {
      type: "document",
      source: source("text", "text/plain", "%PDF- is text"),
    }],
    [{ media: bytes(btoa("{}"), "application/json") }, {
      type: "document",
      source: source("text", "text/plain", "{}"),
    }],
    [{ media: { kind: "url", url: "https://example.test/a" } }, {
      type: "image",
      source: { type: "url", url: "https://example.test/a" },
    }],
    [{ media: { kind: "url", url: "https://example.test/a" }, name: "a" }, {
      type: "document",
      source: { type: "url", url: "https://example.test/a" },
      title: "a",
    }],
    [{ media: { kind: "url", url: "https://example.test/a", mediaType: "application/pdf" } }, {
      type: "document",
      source: { type: "url", url: "https://example.test/a" },
    }],
  ];
  for (const [block, written] of cases) {
    const { body } = write({ messages: [messageOf("user", { type: "media", ...block })] });
    assertEquals<unknown>(body.messages, [{ role: "user", content: [written] }]);
  }
});

Deno.test("writePrompt() rejects content that the protocol lacks", () => {
  const media = (base64: string, type: string): ContentBlock => ({ type: "media", media: bytes(base64, type) });
  const cases: [members: Partial<Prompt>, message: string][] = [
    [{ messages: [messageOf("user", media("AAAA", "image/bmp"))] }, 'Cannot send media of type "image/bmp"'],
    [{ messages: [messageOf("user", media("AAAA", "audio/wav"))] }, 'Cannot send media of type "audio/wav"'],
    [
      { messages: [messageOf("user", media("AAAA", "application/zip"))] },
      'Cannot send media of type "application/zip"',
    ],
    [{ messages: [messageOf("user", media("/////w==", "text/plain"))] }, "its text is not UTF-8"],
    [
      {
        messages: [messageOf("user", {
          type: "media",
          media: { kind: "url", url: "https://example.test/a", mediaType: "text/plain" },
        })],
      },
      'Cannot send a URL of type "text/plain"',
    ],
    [{ messages: [messageOf("system", media(PNG, "image/png")), messageOf("user", "Hi")] }, "in a system message"],
  ];
  for (const [members, message] of cases) {
    const error = assertThrows(() => write(members), GatewayError, message);
    assertEquals(error.kind, "invalid");
  }
});

Deno.test("writePrompt() drops what the model does not support, and names it unless it is the default", () => {
  const row = { supported_parameters: ["tools"] };
  const parameters = { type: "object", properties: {} };
  const strict: Partial<Prompt> = { tools: [{ ...TOOL, parameters, strict: true }] };
  assertEquals<unknown>(write(strict).body.tools, [
    { name: "f", input_schema: { ...parameters, additionalProperties: false }, strict: true },
  ]);
  const isNotStrict = { ...write({}).body, tools: [{ name: "f", input_schema: parameters }] };
  assertEquals(write(strict, row), { body: isNotStrict, dropped: ["tools.strict"] });
  const map = { type: "object", properties: { labels: { type: "object", additionalProperties: { type: "string" } } } };
  assertEquals(write({ tools: [{ ...TOOL, parameters: map, strict: true }] }), {
    body: { ...write({}).body, tools: [{ name: "f", input_schema: map }] },
    dropped: ["tools.strict"],
  });
  assertEquals(write({ sampling: { temperature: 1, topP: 1 } }, row), write({}));
  assertEquals(write({ sampling: { temperature: 0.5, topP: 0.9, topK: 5 } }, row).dropped, [
    "temperature",
    "top_p",
    "top_k",
  ]);
});

Deno.test("writePrompt() writes the output format, or describes it to the model", () => {
  const schema = { type: "array" };
  const format = { type: "json_schema", schema, name: "n", description: "a thing" } as const;
  assertEquals(write({ format }).body.output_config, {
    format: { type: "json_schema", schema: { description: "a thing", type: "array" } },
  });
  assertEquals(write({ format: { type: "text" } }), write({}));
  assertEquals(
    write({ format: { type: "json_object" }, messages: [messageOf("system", "One."), messageOf("user", "Hi")] }).body
      .system,
    [{ type: "text", text: "One." }, { type: "text", text: "Answer with one JSON object and nothing else." }],
  );
  const { body, dropped } = write({ format }, { supported_parameters: [] });
  assertEquals(body.output_config, undefined);
  assertEquals(
    body.system,
    'Answer with JSON (a thing) that is valid by this JSON Schema, and nothing else:\n{"type":"array"}',
  );
  assertEquals(dropped, ["response_format"]);
  const map = write({ format: { ...format, schema: { type: "object" }, inWords: true } });
  assertEquals([map.body.output_config, map.dropped], [undefined, ["response_format"]]);
});

function bytes(base64: string, mediaType: string): { kind: "bytes"; base64: string; mediaType: string } {
  return { kind: "bytes", base64, mediaType };
}
