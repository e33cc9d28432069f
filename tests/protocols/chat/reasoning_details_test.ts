import { assertEquals } from "@std/assert";
import type { ContentBlock, ContentBlockOf } from "../../../lib/protocols/canonical/types.ts";
import type { Json, JsonObject } from "../../../lib/json/mod.ts";
import { chat } from "../../../lib/protocols/chat/mod.ts";
import { writeDetails } from "../../../lib/protocols/chat/reasoning_details.ts";
import { assistantRequest } from "./requests.ts";

function readBack(message: JsonObject): ContentBlock[] | undefined {
  return chat.readPrompt(assistantRequest(message)).messages[1]?.blocks;
}

const CLAUDE = "anthropic-claude-v1";
const OPENAI = "openai-responses-v1";

Deno.test("reasoning_details contain each block, and can be read back", () => {
  const cases: [block: ContentBlockOf<"reasoning">, entries: JsonObject[]][] = [
    [
      { type: "reasoning", text: "plan" },
      [{ type: "reasoning.text", text: "plan", signature: null, format: "unknown", id: null, index: 4 }],
    ],
    [
      { type: "reasoning", text: "plan", signature: { issuer: "anthropic", value: "c2ln" } },
      [{ type: "reasoning.text", text: "plan", signature: "c2ln", format: CLAUDE, id: null, index: 4 }],
    ],
    [
      { type: "reasoning", text: "", hidden: true, signature: { issuer: "anthropic", value: "c2ln" } },
      [{ type: "reasoning.text", text: "", signature: "c2ln", format: CLAUDE, id: null, index: 4 }],
    ],
    [
      { type: "reasoning", text: "", hidden: true, signature: { issuer: "anthropic", value: "aGlk", id: "redacted" } },
      [{ type: "reasoning.encrypted", data: "aGlk", format: CLAUDE, id: null, index: 4 }],
    ],
    [
      { type: "reasoning", text: "short", signature: { issuer: "openai", value: "gAAA", id: "rs_1" } },
      [
        { type: "reasoning.summary", summary: "short", id: "rs_1", format: OPENAI, index: 4 },
        { type: "reasoning.encrypted", data: "gAAA", id: "rs_1", format: OPENAI, index: 5 },
      ],
    ],
    [
      { type: "reasoning", text: "", hidden: true, signature: { issuer: "openai", value: "gAAA" } },
      [{ type: "reasoning.encrypted", data: "gAAA", id: null, format: OPENAI, index: 4 }],
    ],
  ];
  for (const [block, entries] of cases) {
    assertEquals(writeDetails(block, 4), entries);
    assertEquals(readBack({ reasoning_details: entries }), [block]);
  }
});

Deno.test("reasoning_details keep blocks separate", () => {
  const blocks: ContentBlockOf<"reasoning">[] = [
    { type: "reasoning", text: "a", signature: { issuer: "openai", value: "1", id: "rs_1" } },
    { type: "reasoning", text: "", hidden: true, signature: { issuer: "openai", value: "2", id: "rs_2" } },
    { type: "reasoning", text: "", signature: { issuer: "openai", value: "3" } },
    { type: "reasoning", text: "b", signature: { issuer: "openai", value: "4" } },
    { type: "reasoning", text: "c", signature: { issuer: "anthropic", value: "5" } },
    { type: "reasoning", text: "d" },
  ];
  const entries: JsonObject[] = [];
  for (const block of blocks) entries.push(...writeDetails(block, entries.length));
  assertEquals(entries.map(({ index }) => index), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
  assertEquals<ContentBlock[] | undefined>(readBack({ reasoning_details: entries }), blocks);
});

Deno.test("reasoning of assistant messages is read from the first member that has any", () => {
  const signed = { type: "reasoning.text", text: "plan", signature: "S", index: 0 };
  const block = { type: "reasoning", text: "plan", signature: { issuer: "anthropic", value: "S" } };
  const cases: [message: JsonObject, blocks: Json[]][] = [
    [{ reasoning_details: [signed], reasoning_content: "other", reasoning: "another" }, [block]],
    [{ provider_specific_fields: { reasoning_details: [signed] }, reasoning_content: "plan" }, [block]],
    [{ reasoning_details: [], reasoning_content: "plan" }, [{ type: "reasoning", text: "plan" }]],
    [{ reasoning_content: "plan", reasoning: "other" }, [{ type: "reasoning", text: "plan" }]],
    [{ reasoning_content: "", reasoning: "plan" }, [{ type: "reasoning", text: "plan" }]],
    [{ reasoning_content: "" }, []],
    [{ reasoning: null, reasoning_content: null, reasoning_details: null, thinking_blocks: null }, []],
    [
      {
        reasoning_content: "plan",
        thinking_blocks: [
          { type: "thinking", thinking: "plan", signature: "S" },
          { type: "redacted_thinking", data: "D" },
          { type: "thinking", thinking: "aloud" },
          { type: "thinking", thinking: "" },
        ],
      },
      [
        block,
        { type: "reasoning", text: "", hidden: true, signature: { issuer: "anthropic", value: "D", id: "redacted" } },
        { type: "reasoning", text: "aloud" },
      ],
    ],
  ];
  for (const [message, blocks] of cases) assertEquals<unknown>(readBack(message), blocks, JSON.stringify(message));
});

Deno.test("entries of other gateways are read by format, else by shape", () => {
  const cases: [entries: JsonObject[], blocks: JsonObject[]][] = [
    [
      [
        { type: "reasoning.summary", summary: "one", format: OPENAI, index: 0 },
        { type: "reasoning.summary", summary: "two", format: OPENAI, index: 0 },
        { type: "reasoning.encrypted", data: "gAAA", id: "rs_9", format: OPENAI, index: 0 },
      ],
      [{ type: "reasoning", text: "one\n\ntwo", signature: { issuer: "openai", value: "gAAA", id: "rs_9" } }],
    ],
    [
      [{ type: "reasoning.encrypted", data: "gAAA", id: "rs_9" }],
      [{ type: "reasoning", text: "", hidden: true, signature: { issuer: "openai", value: "gAAA", id: "rs_9" } }],
    ],
    [
      [{ type: "reasoning.encrypted", data: "zzz", format: "google-gemini-v1" }],
      [{ type: "reasoning", text: "", hidden: true, signature: { issuer: "google-gemini-v1", value: "zzz" } }],
    ],
    [
      [{ type: "reasoning.encrypted", data: "zzz" }],
      [{ type: "reasoning", text: "", hidden: true, signature: { issuer: "unknown", value: "zzz" } }],
    ],
    [
      [{ type: "reasoning.text", text: "plan" }, { type: "reasoning.text", text: "" }],
      [{ type: "reasoning", text: "plan" }],
    ],
    // The last piece of a text.
    [
      [
        { type: "reasoning.text", text: "", signature: null, format: OPENAI, id: "rs_9", index: 0 },
        { type: "reasoning.encrypted", data: "gAAA", id: "rs_9", format: OPENAI, index: 1 },
      ],
      [{ type: "reasoning", text: "", signature: { issuer: "openai", value: "gAAA", id: "rs_9" } }],
    ],
    [
      [{ type: "reasoning.server_tool_call", tool_name: "t", index: 3 }],
      [{
        type: "vendor_specific",
        from: "chat",
        value: { type: "reasoning.server_tool_call", tool_name: "t", index: 3 },
      }],
    ],
  ];
  for (const [entries, blocks] of cases) assertEquals<unknown>(readBack({ reasoning_details: entries }), blocks);
});
