import { assert, assertEquals } from "@std/assert";
import type { ContentBlock, Message, Prompt } from "../../lib/protocols/canonical/types.ts";
import { countMessages, countPrompt, countReply } from "../../lib/billing/count_prompt.ts";
import { blockParts, fixedParts, writeLongParts } from "../../lib/billing/prompt_parts.ts";
import { loadTokenCounter } from "../../lib/o200k/mod.ts";
import { promptOf, user } from "../protocols/canonical/messages.ts";

const counter = await loadTokenCounter();
const tokens = counter.count;

/** Tokens of one user message with these blocks, without its frame. */
async function blocksTokens(...blocks: ContentBlock[]): Promise<number> {
  const { messages } = await countMessages(promptOf([{ role: "user", blocks }]), counter);
  return (messages[0] ?? NaN) - 3;
}

function png(width: number, height: number): string {
  const header = new DataView(new ArrayBuffer(33));
  [0x89504e47, 0x0d0a1a0a, 13, 0x49484452, width, height].forEach((word, i) => header.setUint32(4 * i, word));
  return btoa(String.fromCharCode(...new Uint8Array(header.buffer)));
}

Deno.test("countPrompt() counts 3 per message, 3 for the answer, and the tokens of the texts", async () => {
  assertEquals(await countPrompt(promptOf([]), counter), 3);
  const messages: Message[] = [
    { role: "system", blocks: [{ type: "text", text: "Be brief." }] },
    { role: "user", blocks: [{ type: "text", text: "Hello, world!" }, { type: "text", text: "Hi" }] },
    { role: "assistant", blocks: [] },
  ];
  assertEquals(await countMessages(promptOf(messages), counter), {
    fixed: 3,
    messages: [3 + tokens("Be brief."), 3 + 4 + tokens("Hi"), 3],
  });
  assertEquals(await countPrompt(promptOf(messages), counter), 3 + 9 + tokens("Be brief.") + 4 + tokens("Hi"));
});

Deno.test("countMessages() counts what the model reads of each kind of block", async () => {
  const value = { type: "server_tool_use", name: "web_search", input: { query: "weather" } };
  const result: ContentBlock = {
    type: "tool_result",
    callId: "call_1",
    blocks: [{ type: "text", text: "sunny" }, {
      type: "tool_result",
      callId: "x",
      blocks: [{ type: "text", text: "20 °C" }],
    }],
  };
  const cases: [ContentBlock, number][] = [
    [{ type: "text", text: "" }, 0],
    [{ type: "refusal", text: "I cannot help with that" }, tokens("I cannot help with that")],
    [{ type: "reasoning", text: "Let me think", signature: { issuer: "a", value: "AAAA" } }, tokens("Let me think")],
    [
      { type: "tool_call", id: "call_1", name: "get_weather", arguments: '{"city":"Rome"}' },
      tokens("get_weather") + tokens('{"city":"Rome"}'),
    ],
    [result, tokens("sunny") + tokens("20 °C")],
    [{ type: "vendor_specific", from: "messages", value }, tokens(JSON.stringify(value))],
  ];
  for (const [block, expected] of cases) assertEquals(await blocksTokens(block), expected, block.type);
});

Deno.test("countMessages() counts tools and answer format as fixed", async () => {
  const parameters = { type: "object", properties: { city: { type: "string" } } };
  const cases: [Partial<Prompt>, number][] = [
    [{ tools: [{ type: "function", name: "f" }] }, tokens("f")],
    [
      { tools: [{ type: "function", name: "get_weather", description: "Weather of a city", parameters }] },
      tokens("get_weather") + tokens("Weather of a city") + tokens(JSON.stringify(parameters)),
    ],
    [
      { tools: [{ type: "custom", name: "run", format: { type: "text" } }] },
      tokens("run") + tokens('{"type":"text"}'),
    ],
    [
      { tools: [{ type: "hosted", from: "responses", value: { type: "web_search" } }] },
      tokens('{"type":"web_search"}'),
    ],
    [
      { format: { type: "json_schema", schema: parameters, name: "place" } },
      tokens("place") + tokens(JSON.stringify(parameters)),
    ],
    [{ format: { type: "json_object" } }, 0],
  ];
  for (const [prompt, expected] of cases) {
    assertEquals(await countMessages(promptOf([], prompt), counter), { fixed: 3 + expected, messages: [] });
  }
});

Deno.test("countMessages() counts images by size and other media as documented", async () => {
  const image = (base64: string): ContentBlock => ({
    type: "media",
    media: { kind: "bytes", mediaType: "image/png", base64 },
  });
  const file = (mediaType: string, base64: string): ContentBlock => ({
    type: "media",
    media: { kind: "bytes", mediaType, base64 },
  });
  const cases: [ContentBlock, number][] = [
    [image(png(1, 1)), 1],
    [image(png(200, 200)), 54],
    [image(png(1000, 1000)), 1334],
    [image(png(3136, 1568)), Math.ceil(1568 * 784 / 750)],
    [image(png(100_000, 1)), Math.ceil(1568 * 1568 / 100_000 / 750)],
    [image(btoa("no image")), 1600],
    [{ type: "media", media: { kind: "url", url: "https://example.com/a.png" } }, 1600],
    [file("text/plain", btoa("Hello, world!")), 4],
    [file("text/plain; charset=utf-8", btoa("\xe4\xbd\xa0\xe5\xa5\xbd")), tokens("你好")],
    [file("text/plain", "!!!"), 1],
    [file("application/zip", btoa("x".repeat(4001))), 1001],
    [file("application/zip", ""), 0],
    [file("application/pdf", btoa("<</Type/Page>>".repeat(3))), 3 * 1600],
    [file("application/pdf", ""), 1600],
    [{ ...file("application/pdf", btoa("1234")), name: "a report.pdf" } as ContentBlock, 1600 + tokens("a report.pdf")],
  ];
  for (const [block, expected] of cases) assertEquals(await blocksTokens(block), expected, JSON.stringify(block));
});

Deno.test("countMessages() decodes long text files exactly, at any step size", async () => {
  const text = "Größe 你好 👍🏽 ".repeat(10_000);
  let binary = "";
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte);
  const block: ContentBlock = {
    type: "media",
    media: { kind: "bytes", mediaType: "text/plain", base64: btoa(binary) },
  };
  assertEquals(await blocksTokens(block), tokens(text));
});

Deno.test("countPrompt() yields to the event loop for many short texts and for one long text", async () => {
  const short: Message[] = Array.from(
    { length: 3000 },
    () => ({ role: "user", blocks: [{ type: "text", text: "word ".repeat(20) }] }),
  );
  const long: Message[] = [{ role: "user", blocks: [{ type: "text", text: "a".repeat(200_000) }] }];
  for (const messages of [short, long]) {
    let turns = 0;
    let done = false;
    const counting = countPrompt(promptOf(messages), counter).finally(() => done = true);
    while (!done) {
      await new Promise((resolve) => setTimeout(resolve, 0));
      turns++;
    }
    assert(await counting > 3 * messages.length);
    assert(turns > 2, `${turns} turns`);
  }
});

Deno.test("countReply() includes reasoning in the completion", async () => {
  const blocks: ContentBlock[] = [
    { type: "reasoning", text: "Let me think about it" },
    { type: "text", text: "Hello" },
    { type: "tool_call", id: "1", name: "f", arguments: "{}" },
  ];
  const reasoning = tokens("Let me think about it");
  assertEquals(await countReply(blocks, counter), {
    reasoning,
    completion: reasoning + 1 + tokens("f") + tokens("{}"),
  });
  assertEquals(await countReply([], counter), { reasoning: 0, completion: 0 });
});

Deno.test("parts written in advance count the same as others", async () => {
  const odd = { a: '"\ud800'.repeat(40_000), b: [1, { c: null }], __proto__: {} };
  const value = () => ({ type: "x", ...odd });
  const make = () =>
    promptOf([user({ type: "vendor_specific", from: "messages", value: value() })], {
      tools: [
        { type: "function", name: "f", parameters: value() },
        { type: "function", name: "none" },
        { type: "custom", name: "g", format: value() },
        { type: "hosted", from: "responses", value: value() },
      ],
      format: { type: "json_schema", schema: value() },
    });
  const written = make();
  await writeLongParts(written);
  assertEquals([...fixedParts(written)], [...fixedParts(make())]);
  const blocks = (prompt: Prompt) => prompt.messages.flatMap((message) => [...blockParts(message.blocks)]);
  assertEquals(blocks(written), blocks(make()));
  await writeLongParts(promptOf([]));
});
