import { assertEquals, assertThrows } from "@std/assert";
import type { ContentBlock, Message, Prompt, Tool } from "../../../lib/protocols/canonical/types.ts";
import { GatewayError } from "../../../lib/errors.ts";
import type { Json, JsonObject } from "../../../lib/json/mod.ts";
import { messageOf, write } from "./upstream_targets.ts";

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ";
const TOOL: Tool = { type: "function", name: "f", parameters: { type: "object" } };
const LOOK: ContentBlock = { type: "tool_call", id: "c1", name: "f", arguments: '{"n":1.0}' };

Deno.test("writePrompt() places the system prompt and later system messages", () => {
  const mark = "<system>\nLater.\n</system>";
  const cases: [what: string, messages: Message[], takes: boolean, system: Json | undefined, turns: Json][] = [
    [
      "leading messages are one block each",
      [messageOf("system", "One."), messageOf("system", "Two."), messageOf("user", "Hi")],
      false,
      [{ type: "text", text: "One." }, { type: "text", text: "Two." }],
      [{ role: "user", content: "Hi" }],
    ],
    ["one text is a string", [messageOf("system", "One."), messageOf("user", "Hi")], false, "One.", [{
      role: "user",
      content: "Hi",
    }]],
    [
      "a later one stays where the model takes it",
      [messageOf("user", "Hi"), messageOf("system", "Later."), messageOf("assistant", "Yes")],
      true,
      undefined,
      [{ role: "user", content: "Hi" }, { role: "system", content: "Later." }, { role: "assistant", content: "Yes" }],
    ],
    [
      "a later one is the user's elsewhere",
      [messageOf("user", "Hi"), messageOf("system", "Later."), messageOf("assistant", "Yes")],
      false,
      undefined,
      [
        { role: "user", content: [{ type: "text", text: "Hi" }, { type: "text", text: mark }] },
        { role: "assistant", content: "Yes" },
      ],
    ],
    [
      "after the model's turn it is the user's everywhere",
      [messageOf("user", "Hi"), messageOf("assistant", "Yes"), messageOf("system", "Later.")],
      true,
      undefined,
      [{ role: "user", content: "Hi" }, { role: "assistant", content: "Yes" }, { role: "user", content: mark }],
    ],
    [
      "it follows the results of that turn",
      [
        messageOf("assistant", LOOK),
        messageOf("user", { type: "tool_result", callId: "c1", blocks: [] }),
        messageOf("system", "Later."),
      ],
      false,
      undefined,
      [
        { role: "assistant", content: [{ type: "tool_use", id: "c1", name: "f", input: JSON.parse('{"n":1}') }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "c1" }, { type: "text", text: mark }] },
      ],
    ],
  ];
  for (const [what, messages, takes, system, turns] of cases) {
    const { body } = write({ messages }, { features: { system_messages: takes } });
    assertEquals<unknown>(plain(body.system), system, what);
    assertEquals<unknown>(plain(body.messages), turns, what);
  }
});

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

Deno.test("writePrompt() writes tools and the choice among them", () => {
  const written = { name: "f", input_schema: { type: "object" } };
  const cases: [members: Partial<Prompt>, tools: JsonObject[] | undefined, choice: JsonObject | undefined][] = [
    [{ tools: [TOOL] }, [written], undefined],
    [{ tools: [TOOL], parallelToolCalls: true }, [written], undefined],
    [{ tools: [TOOL], parallelToolCalls: false }, [written], { type: "auto", disable_parallel_tool_use: true }],
    [{ tools: [TOOL], toolChoice: { type: "none" }, parallelToolCalls: false }, [written], { type: "none" }],
    [{ tools: [TOOL], toolChoice: { type: "required" } }, [written], { type: "any" }],
    [{ tools: [TOOL], toolChoice: { type: "tool", name: "f" }, parallelToolCalls: false }, [written], {
      type: "tool",
      name: "f",
      disable_parallel_tool_use: true,
    }],
    [{ tools: [TOOL], toolChoice: { type: "allowed", mode: "required", names: ["f"] } }, [written], { type: "any" }],
    [{ tools: [], toolChoice: { type: "auto" }, parallelToolCalls: false }, undefined, undefined],
    [{ tools: [{ type: "function", name: "g", description: "d", strict: false, cache: { ttl: "1h" } }] }, [{
      name: "g",
      description: "d",
      input_schema: { type: "object", properties: {} },
      cache_control: { type: "ephemeral", ttl: "1h" },
    }], undefined],
    [{ tools: [{ ...TOOL, strict: true }] }, [{
      name: "f",
      input_schema: { type: "object", additionalProperties: false },
      strict: true,
    }], undefined],
    [{ tools: [{ type: "hosted", from: "messages", value: { type: "bash_20250124", name: "bash" } }] }, [{
      type: "bash_20250124",
      name: "bash",
    }], undefined],
  ];
  for (const [members, tools, choice] of cases) {
    const { body } = write(members);
    assertEquals<unknown>([body.tools, body.tool_choice], [tools, choice], JSON.stringify(members));
  }
  assertEquals(write({ tools: [{ ...TOOL, strict: true }] }, { supported_parameters: ["tools"] }), {
    body: { ...write({}).body, tools: [written] },
    dropped: ["tools.strict"],
  });
});

Deno.test("writePrompt() writes supported sampling parameters and names others", () => {
  const cases: [Partial<Prompt>, Record<string, unknown>, written: JsonObject, dropped: string[]][] = [
    [{ sampling: { temperature: 0.5, topP: 0.9, topK: 5 } }, {}, { temperature: 0.5, top_p: 0.9, top_k: 5 }, []],
    [{ sampling: { temperature: 0 } }, {}, { temperature: 0 }, []],
    [{ sampling: { temperature: 1.7 } }, {}, { temperature: 1 }, ["temperature"]],
    [{ sampling: { temperature: 0.5, topP: 0.9, topK: 5 } }, { supported_parameters: [] }, {}, [
      "temperature",
      "top_p",
      "top_k",
    ]],
    [{ sampling: { temperature: 1, topP: 1 } }, { supported_parameters: [] }, {}, []],
    [{ sampling: { temperature: 0.5, topP: 0.9 } }, { features: { exclusive_sampling: true } }, { temperature: 0.5 }, [
      "top_p",
    ]],
    [{ sampling: { topP: 0.9 } }, { features: { exclusive_sampling: true } }, { top_p: 0.9 }, []],
    [
      { sampling: { temperature: 0.2 }, reasoning: { effort: "high" } },
      {},
      { thinking: { type: "adaptive", display: "summarized" }, output_config: { effort: "high" } },
      ["temperature"],
    ],
    [
      {
        sampling: {
          frequencyPenalty: 1,
          presencePenalty: 1,
          seed: 0,
          logitBias: { "1": 1 },
        },
      },
      {},
      {},
      ["frequency_penalty", "presence_penalty", "seed", "logit_bias"],
    ],
    [
      { sampling: { frequencyPenalty: 0, presencePenalty: 0, logitBias: {} } },
      {},
      {},
      [],
    ],
    [{ stop: ["a", "b"] }, {}, { stop_sequences: ["a", "b"] }, []],
    [{ maxTokens: 70_000 }, {}, { max_tokens: 64_000 }, []],
    [{ maxTokens: 0, stream: true, user: "u1" }, {}, { max_tokens: 0, stream: true, metadata: { user_id: "u1" } }, []],
  ];
  for (const [members, row, written, dropped] of cases) {
    const expected = { body: { ...write({}).body, ...written }, dropped };
    assertEquals(write(members, row), expected, JSON.stringify(members));
  }
});

Deno.test("writePrompt() writes the output format, or describes it to the model", () => {
  const format = { type: "json_schema", schema: { type: "object" }, name: "n", description: "a thing" } as const;
  assertEquals(write({ format }).body.output_config, {
    format: { type: "json_schema", schema: { description: "a thing", type: "object" } },
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
    'Answer with JSON (a thing) that is valid by this JSON Schema, and nothing else:\n{"type":"object"}',
  );
  assertEquals(dropped, ["response_format"]);
});

function bytes(base64: string, mediaType: string): { kind: "bytes"; base64: string; mediaType: string } {
  return { kind: "bytes", base64, mediaType };
}

/** Numbers that are kept as text, as numbers. */
function plain(value: Json | undefined): unknown {
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value));
}
