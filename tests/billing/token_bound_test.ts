import { assert, assertEquals } from "@std/assert";
import type { ContentBlock, Prompt } from "../../lib/protocols/canonical/types.ts";
import { affordableOutput, estimateTokens, MIN_OUTPUT, tokenBound } from "../../lib/billing/token_bound.ts";
import { countPages } from "../../lib/billing/prompt_parts.ts";
import { countPrompt } from "../../lib/billing/count_prompt.ts";
import { parseUsd } from "../../lib/billing/money.ts";
import { costBound } from "../../lib/billing/price.ts";
import { loadTokenCounter } from "../../lib/o200k/mod.ts";
import type { JsonObject } from "../../lib/json/mod.ts";
import { promptOf, user } from "../protocols/canonical/messages.ts";
import { seeded } from "../support/random.ts";
import { SHEET } from "./entries.ts";
import { randomText } from "../o200k/random_text.ts";
import { workedMs } from "../support/turns.ts";

const MODEL = {
  context_length: 200_000,
  top_provider: { context_length: 200_000, max_completion_tokens: 8_000, is_moderated: false },
};

function prompt(blocks: ContentBlock[], members: Partial<Prompt> = {}): Prompt {
  return promptOf([user(...blocks)], members);
}

Deno.test("tokenBound() is never below the counted tokens of a prompt", async () => {
  const counter = await loadTokenCounter();
  const random = seeded(5);
  for (let round = 0; round < 300; round++) {
    const text = randomText(random, random.below(400));
    const one = prompt([
      { type: "text", text },
      { type: "tool_call", id: "c", name: "get", arguments: JSON.stringify({ text }) },
      { type: "tool_result", callId: "c", blocks: [{ type: "text", text }] },
    ], { tools: [{ type: "function", name: "get", description: text, parameters: { type: "object" } }] });
    const counted = await countPrompt(one, counter);
    const { input } = tokenBound(one, MODEL);
    assert(input >= counted, `${input} < ${counted} of ${JSON.stringify(text)}`);
  }
});

Deno.test("tokenBound() bounds the output by the request or the model, for every answer", () => {
  const output = (members: Partial<Prompt>) => tokenBound(prompt([], members), MODEL).output;
  assertEquals(output({}), 8_000);
  assertEquals(output({ maxTokens: 5 }), 5);
  assertEquals(output({ maxTokens: 5, n: 3 }), 15);
  assertEquals(output({ n: 2 }), 16_000);
  assertEquals(output({ maxTokens: 1_000_000_000, n: 2 }), 16_000);
});

Deno.test("tokenBound() and estimateTokens() never exceed the model's context", () => {
  const text = "x".repeat(300_000);
  const file: ContentBlock = {
    type: "media",
    media: { kind: "url", url: "https://a/b.pdf", mediaType: "application/pdf" },
  };
  for (const block of [{ type: "text", text } as ContentBlock, file]) {
    assertEquals(tokenBound(prompt([block]), MODEL).input, MODEL.context_length);
  }
  const long: ContentBlock = { type: "text", text: "x".repeat(4 * MODEL.context_length + 100) };
  assertEquals(estimateTokens(prompt([long]), MODEL).input, MODEL.context_length);
  const hosted = prompt([], { tools: [{ type: "hosted", from: "responses", value: { type: "web_search" } }] });
  assertEquals(tokenBound(hosted, MODEL).input, MODEL.context_length);
});

Deno.test("tokenBound() bounds each kind of part separately", () => {
  const bare = tokenBound(prompt([]), MODEL).input;
  const tool = tokenBound(prompt([], { tools: [{ type: "function", name: "f" }] }), MODEL).input - bare;
  assert(tool > 804, `${tool} for a tool: vendors say how tools are used`);
  const bytes = (mediaType: string, base64: string): ContentBlock => ({
    type: "media",
    media: { kind: "bytes", mediaType, base64 },
  });
  const result = (block: ContentBlock): ContentBlock => ({ type: "tool_result", callId: "c", blocks: [block] });
  const signature = { issuer: "a", value: "s".repeat(3000) };
  const unknownMembers = { from: "chat", members: { title: "t".repeat(2000) } } as const;
  const cases: [block: ContentBlock, least: number, most: number][] = [
    [bytes("image/png", btoa("x".repeat(100_000))), 4784, 5100],
    [result(bytes("image/png", "")), 4784, 5100],
    [{ type: "media", media: { kind: "url", url: "https://a/b.png" } }, 4784, 5100],
    [bytes("text/plain", btoa("x".repeat(999))), 999, 1100],
    [bytes("application/pdf", btoa("x".repeat(30_001))), 30_001, 30_100],
    [bytes("application/pdf", btoa("x")), 4784, 5100],
    [{ type: "reasoning", text: "", hidden: true, signature }, 3000, 3100],
    [{ type: "text", text: "", unknownMembers }, 2000, 2100],
    [{ type: "vendor_specific", from: "messages", value: { text: "f".repeat(500) } }, 500, 600],
    [{ type: "text", text: "\ud800".repeat(100) }, 300, 400],
  ];
  for (const [block, least, most] of cases) {
    const more = tokenBound(prompt([block]), MODEL).input - bare;
    assert(more >= least && more <= most, `${more} for ${JSON.stringify(block).slice(0, 80)}`);
  }
});

Deno.test("tokenBound() counts the pages of a PDF of any declared type", async () => {
  const base64 = btoa(`%PDF-1.4\n${"<</Type/Page>>\n".repeat(90)}`);
  for (const mediaType of ["application/pdf", "application/octet-stream", "image/png"]) {
    const sent = prompt([{ type: "media", media: { kind: "bytes", mediaType, base64 } }]);
    await countPages(sent);
    const { input } = tokenBound(sent, { ...MODEL, context_length: 10_000_000 });
    assert(input >= 90 * 4784, `${input} for ${mediaType}`);
  }
});

Deno.test("tokenBound() bounds a PDF whose pages are hidden by the context alone", async () => {
  const base64 = btoa("%PDF-1.7\n<</Type/Page>>\n<</Type/ObjStm>>\nstream\nencrypted");
  const sent = prompt([{ type: "media", media: { kind: "bytes", mediaType: "application/pdf", base64 } }]);
  await countPages(sent);
  assertEquals(tokenBound(sent, { ...MODEL, context_length: 10_000_000 }).input, 10_000_000);
});

/** An archive with two files, of 60,000 and 6,000 letters. */
const ARCHIVE = "UEsDBBQAAAAIAAAAIQCSieKyTAAAAGDqAAARAAAAd29yZC9kb2N1bWVudC54bWztwTEBAAAAwqCs61/CGh5AAQAAAAAAAAAAAAAA" +
  "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAHwZUEsDBBQAAAAIAAAAIQCff76JGAAAAHAXAAAB" +
  "AAAAYu3BMQEAAADCoK7rH8IQvkABAAAAAACvAVBLAQIUAxQAAAAIAAAAIQCSieKyTAAAAGDqAAARAAAAAAAAAAAAAACAAQAAAAB3" +
  "b3JkL2RvY3VtZW50LnhtbFBLAQIUAxQAAAAIAAAAIQCff76JGAAAAHAXAAABAAAAAAAAAAAAAACAAXsAAABiUEsFBgAAAAACAAIA" +
  "bgAAALIAAAAAAA==";

Deno.test("tokenBound() bounds a compressed document by its unpacked size, or by the context if that is hidden", () => {
  const docx = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
  const bound = (base64: string, mediaType = docx) => {
    const sent = prompt([{ type: "media", media: { kind: "bytes", mediaType, base64 } }]);
    return tokenBound(sent, { ...MODEL, context_length: 10_000_000 }).input;
  };
  const plain = bound(btoa("x".repeat(66_000)));
  assertEquals([bound(ARCHIVE), bound(ARCHIVE.slice(0, -40)), bound("UEsDBBQA")], [plain, 10_000_000, 10_000_000]);
  const damaged = atob(ARCHIVE).replaceAll("PK\x01\x02", "PK\x01\x03");
  assertEquals(bound(btoa(damaged)), 10_000_000);
  // Some readers use a second, empty directory at the end instead of the directory that the end record names.
  const empty = `PK\x05\x06${"\0".repeat(18)}`;
  assertEquals(bound(btoa(atob(ARCHIVE) + empty)), 10_000_000);
  const text = `PK\x03\x04${"x".repeat(70_000)}`;
  const endOfText = `PK\x05\x06${"\0".repeat(12)}\x74\x11\x01\0\0\0`;
  assert(bound(btoa(text + endOfText), "text/plain") > 70_000);
});

Deno.test("tokenBound() bounds a video by the context alone", () => {
  const video: ContentBlock = { type: "media", media: { kind: "bytes", mediaType: "video/mp4", base64: "AAAA" } };
  assertEquals(tokenBound(prompt([video]), MODEL).input, MODEL.context_length);
});

Deno.test("tokenBound() bounds a prompt with a template or image processing of its own by the context alone", () => {
  for (
    const members of [
      { chat_template: "{% for _ in range(9999) %}a{% endfor %}" },
      { mm_processor_kwargs: { max_pixels: 100_000_000 } },
    ]
  ) {
    const unknownMembers = { from: "chat", members } as const;
    assertEquals(
      tokenBound(prompt([{ type: "text", text: "a" }], { unknownMembers }), MODEL).input,
      MODEL.context_length,
    );
  }
});

Deno.test("tokenBound() bounds audio at an address by the context alone", () => {
  const audio = (data: string): ContentBlock => ({
    type: "vendor_specific",
    from: "chat",
    value: { type: "input_audio", input_audio: { data, format: "wav" } },
  });
  assertEquals(tokenBound(prompt([audio(" https://example.com/a.wav")]), MODEL).input, MODEL.context_length);
  assert(tokenBound(prompt([audio("AAAA")]), MODEL).input < MODEL.context_length);
});

Deno.test("tokenBound() treats a URL as an image if its vendor accepts nothing else", () => {
  const cases: [url: string, isImage: boolean][] = [
    ["https://a/b.PNG?c#d", true],
    ["https://a/b.jpeg", true],
    ["https://a/b", false],
    ["https://a/b?c=d.png", false],
    ["https://youtu.be/b.png", false],
  ];
  for (const [url, isImage] of cases) {
    const one = prompt([{ type: "media", media: { kind: "url", url } }]);
    const { input } = tokenBound(one, { ...MODEL, infersTypes: true });
    assertEquals(input < MODEL.context_length, isImage, url);
  }
  const bare = prompt([{ type: "media", media: { kind: "url", url: "https://a/b" } }]);
  assert(tokenBound(bare, MODEL).input < MODEL.context_length);
});

/** Prompts with a text outside of blocks, and whether estimates count it, too. */
const OUTSIDE: [place: string, isEstimated: boolean, members: (text: string) => Partial<Prompt>][] = [
  ["a tool's name", true, (name) => ({ tools: [{ type: "function", name }] })],
  ["a tool's description", true, (description) => ({ tools: [{ type: "function", name: "f", description }] })],
  ["its parameters", true, (title) => ({ tools: [{ type: "function", name: "f", parameters: { title } }] })],
  [
    "what its vendor knows",
    false,
    (title) => ({ tools: [{ type: "function", name: "f", unknownMembers: chat({ title }) }] }),
  ],
  ["the answer's form", true, (title) => ({ format: { type: "json_schema", schema: { title } } })],
  [
    "what the message's vendor knows",
    false,
    (title) => ({ messages: [{ ...user(), unknownMembers: chat({ title }) }] }),
  ],
  ["what the prompt's vendor knows", false, (title) => ({ unknownMembers: chat({ title }) })],
];

function chat(members: JsonObject): NonNullable<Prompt["unknownMembers"]> {
  return { from: "chat", members };
}

Deno.test("tokenBound() counts a token per byte, estimateTokens() one per four bytes", () => {
  for (const [place, isEstimated, members] of OUTSIDE) {
    const [short, long] = ["", "x".repeat(2_000)].map((text) => prompt([], members(text)));
    assert(short !== undefined && long !== undefined);
    assertEquals(tokenBound(long, MODEL).input - tokenBound(short, MODEL).input, 2_000, place);
    const [least, more] = [short, long].map((one) => estimateTokens(one, MODEL).input);
    assertEquals((more ?? 0) - (least ?? 0), isEstimated ? 500 : 0, place);
  }
});

Deno.test("estimateTokens() adds up all blocks, and media by size", () => {
  const text: ContentBlock = { type: "text", text: "x".repeat(400) };
  const image: ContentBlock = { type: "media", media: { kind: "url", url: "https://a/b.png" } };
  const result: ContentBlock = { type: "tool_result", callId: "c", blocks: [text, image] };
  const input = (...messages: ContentBlock[][]) =>
    estimateTokens(promptOf(messages.map((blocks) => user(...blocks))), MODEL).input;
  const bare = input([]);
  assertEquals([[text], [text, text], [image], [result]].map((blocks) => input(blocks) - bare), [
    100,
    200,
    1600,
    1700,
  ]);
  assertEquals(input([text], [text]) - input([], []), 200);
});

Deno.test("tokenBound() and estimateTokens() take linear time", () => {
  const large = prompt([{ type: "text", text: "Größe and more ".repeat(700_000) }]);
  tokenBound(large, MODEL);
  const start = workedMs();
  for (let round = 0; round < 5; round++) {
    tokenBound(large, MODEL);
    estimateTokens(large, MODEL);
  }
  const ms = workedMs() - start;
  assert(ms < 5_000, `${ms} ms for 10 times 10 MB`);
});

Deno.test("costBound() prices all input at its most expensive class", () => {
  assertEquals(costBound({ input: 10, output: 2 }, SHEET), 10n * parseUsd("0.000006") + 2n * parseUsd("0.000015"));
});

Deno.test("affordableOutput() is exact to the token, and undefined below the minimum", () => {
  const cost = (output: number, n = 1) => costBound({ input: 100, output: output * n }, SHEET);
  for (const n of [1, 3]) {
    for (const output of [MIN_OUTPUT, 1_000, 123_456]) {
      const afford = (left: bigint) => affordableOutput({ available: left, inputTokens: 100, sheet: SHEET, n });
      assertEquals(afford(cost(output, n)), output);
      assertEquals(afford(cost(output, n) - 1n), output === MIN_OUTPUT ? undefined : output - 1);
    }
  }
  const left = (amount: bigint) => affordableOutput({ available: amount, inputTokens: 100, sheet: SHEET });
  assertEquals([left(0n), left(-1n), left(cost(0))], [undefined, undefined, undefined]);
  const free = { ...SHEET, prompt: "0", completion: "0", input_cache_read: "0", input_cache_write_5m: "0" };
  assert(
    (affordableOutput({ available: 0n, inputTokens: 9, sheet: { ...free, input_cache_write_1h: "0" } }) ?? 0) > 1e6,
  );
  const freeOutput = { ...SHEET, completion: "0" };
  assertEquals(affordableOutput({ available: parseUsd("0.000005"), inputTokens: 1, sheet: freeOutput }), undefined);
});

Deno.test("estimateTokens() is close for plain text, and includes the requested output", async () => {
  const counter = await loadTokenCounter();
  const one = prompt([{ type: "text", text: "The quick brown fox jumps over the lazy dog. ".repeat(200) }]);
  const counted = await countPrompt(one, counter);
  const { input, total } = estimateTokens(one, MODEL);
  assert(input > counted * 0.5 && input < counted * 2, `${input} for ${counted}`);
  assertEquals(total - input, 1024);
  assertEquals(estimateTokens({ ...one, maxTokens: 70 }, MODEL).total - input, 70);
  assertEquals(estimateTokens({ ...one, maxTokens: 99_999, n: 2 }, MODEL).total - input, 16_000);
});
