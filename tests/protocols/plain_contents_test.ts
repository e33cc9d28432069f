/** Laws of contents that are relayed without being decoded: contents that the scan recognizes need no other check. */
import { assert, assertEquals, assertGreaterOrEqual, assertStrictEquals } from "@std/assert";
import { countPrompt } from "../../lib/billing/count_prompt.ts";
import { isEstimated } from "../../lib/billing/prompt_parts.ts";
import { estimateTokens, tokenBound } from "../../lib/billing/token_bound.ts";
import { GatewayError } from "../../lib/errors.ts";
import { isObject, type Json, type JsonObject } from "../../lib/json/mod.ts";
import { loadTokenCounter } from "../../lib/o200k/mod.ts";
import { chat } from "../../lib/protocols/chat/mod.ts";
import type { Codec } from "../../lib/protocols/codec.ts";
import type { Prompt } from "../../lib/protocols/canonical/types.ts";
import { acceptsHead, checkBody } from "../../lib/protocols/fields.ts";
import { messages } from "../../lib/protocols/messages/mod.ts";
import { responses } from "../../lib/protocols/responses/mod.ts";
import type { ExtrasCaller } from "../../lib/request/extra_permissions.ts";
import { ScreenedBody } from "../../lib/request/screened_body.ts";
import { type JsonBody, parseBody } from "../../lib/server/parse_body.ts";
import { REQUESTS } from "../golden/requests.ts";
import { seeded } from "../support/random.ts";
import { rounds } from "../support/skip.ts";

const encoder = new TextEncoder();
const MODEL = {
  context_length: 1e9,
  top_provider: { context_length: 1e9, max_completion_tokens: 1000, is_moderated: false },
};
const CALLER: ExtrasCaller = {
  groupName: "default",
  group: { models: ["*"], endpoints: ["*"], protocols: ["*"], price_factor: "1" },
  rules: {},
};

const schema = {
  type: "object",
  properties: { type: { type: "string", enum: ["web_search"] }, file_id: { type: "string" } },
};
const MARK = { cache_control: { type: "ephemeral", ttl: "1h" } };

/** A PNG of 40 x 30 pixels, as far as its header says. */
const PNG = "iVBORw0KGgoAAAANSUhEUgAAACgAAAAeCAIAAADRv8uK";

/** Requests of coding agents. */
const AGENTS: readonly { codec: PlainCodec; body: JsonObject }[] = [
  {
    codec: plain(chat),
    body: {
      model: "m",
      messages: [
        { role: "system", content: "Be brief.\n" },
        { content: [{ type: "text", text: "Caf\u00e9 \ud83d\ude00", ...MARK }], role: "user" },
        {
          role: "assistant",
          content: null,
          reasoning_content: "Hm",
          tool_calls: [{ id: "c1", type: "function", function: { name: "read", arguments: '{"type":"web_search"}' } }],
        },
        { role: "tool", tool_call_id: "c1", content: '{"image_url":{"url":"gs://b/x"}}' },
        { role: "assistant", content: "", refusal: null, tool_calls: null },
        { role: "developer", content: [{ type: "text", text: "x" }], name: "n" },
        {
          role: "user",
          content: [
            { type: "text", text: "See" },
            { type: "image_url", image_url: { url: `data:image/png;base64,${PNG}`, detail: "low" }, ...MARK },
            { type: "image_url", image_url: { url: "data:image/jpeg;base64,/9j/4AA=", detail: null } },
          ],
        },
      ],
      tools: [
        { type: "function", function: { name: "read", description: "Reads", parameters: schema, strict: false } },
        { type: "function", function: { name: "x", parameters: null, description: null, strict: null }, ...MARK },
      ],
      tool_choice: "auto",
      max_tokens: 100,
      stream: true,
      stream_options: { include_usage: true },
    },
  },
  {
    codec: plain(responses),
    body: {
      model: "m",
      instructions: "Be brief.",
      input: [
        { type: "message", role: "user", content: [{ type: "input_text", text: "Caf\u00e9 \ud83d\ude00" }] },
        { role: "developer", content: "x" },
        {
          role: "user",
          content: [{ type: "input_image", image_url: `data:image/png;base64,${PNG}`, detail: "auto" }],
        },
        { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "Hm" }], encrypted_content: "gAAA" },
        { type: "function_call", id: "fc_1", call_id: "c1", name: "read", arguments: '{"a":1}', status: "completed" },
        { type: "function_call_output", call_id: "c1", output: '{"type":"input_image","image_url":"gs://b/x"}' },
        { type: "custom_tool_call", call_id: "c2", name: "patch", input: "*** Begin" },
        { type: "custom_tool_call_output", call_id: "c2", output: [{ type: "input_text", text: "ok" }] },
        {
          type: "function_call_output",
          call_id: "c3",
          output: [{ type: "input_image", image_url: `data:image/webp;base64,${PNG}` }],
        },
        {
          type: "message",
          id: "msg_1",
          role: "assistant",
          status: "completed",
          content: [{ type: "output_text", text: "Done", annotations: [], logprobs: [] }],
        },
      ],
      tools: [
        { type: "function", name: "read", description: "Reads", parameters: schema, strict: false },
        { type: "custom", name: "patch", format: { type: "grammar", syntax: "lark", definition: "start: x" } },
      ],
      tool_choice: "auto",
      parallel_tool_calls: true,
      reasoning: { effort: "high", summary: "auto" },
      include: ["reasoning.encrypted_content"],
      store: false,
      stream: true,
    },
  },
  {
    codec: plain(messages),
    body: {
      model: "m",
      max_tokens: 2000,
      system: [{ type: "text", text: "Be brief.", ...MARK }],
      messages: [
        { role: "user", content: [{ type: "text", text: "Caf\u00e9 \ud83d\ude00" }] },
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "Hm", signature: "EqQB/+=" },
            { type: "redacted_thinking", data: "EmwK" },
            { type: "text", text: "I read it", citations: null },
            { type: "tool_use", id: "toolu_1", name: "read", input: { type: "web_search", image_url: "gs://b/x" } },
          ],
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "toolu_1", content: [{ type: "text", text: "ok" }], is_error: false },
            { tool_use_id: "toolu_2", type: "tool_result", content: "x", ...MARK },
            { type: "tool_result", tool_use_id: "toolu_3" },
          ],
        },
        { role: "assistant", content: "Done" },
        {
          role: "user",
          content: [
            { type: "image", source: { type: "base64", media_type: "image/png", data: PNG }, ...MARK },
            {
              type: "tool_result",
              tool_use_id: "toolu_4",
              content: [{ type: "image", source: { type: "base64", media_type: "image/gif", data: PNG } }],
            },
          ],
        },
      ],
      tools: [
        { name: "read", description: "Reads", input_schema: schema },
        { type: "custom", name: "x", input_schema: {}, strict: true, ...MARK },
      ],
      tool_choice: { type: "auto" },
      thinking: { type: "enabled", budget_tokens: 1024 },
      metadata: { user_id: "u" },
    },
  },
];

/** A protocol with forms that are decoded only when needed. */
type PlainCodec = Codec & Required<Pick<Codec, "plain">>;

function plain(codec: Codec): PlainCodec {
  const { plain } = codec;
  assert(plain !== undefined);
  return { ...codec, plain };
}

const scan = (codec: PlainCodec, bytes: Uint8Array<ArrayBuffer>) =>
  parseBody(bytes, { ...codec.plain.contents, isWanted: () => true });

/** The value or the error of a call. */
async function outcomeOf<T>(work: () => T | Promise<T>): Promise<{ value?: T; error?: string }> {
  try {
    return { value: await work() };
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return { error: `${error.message} ${error.param}` };
  }
}

const screened = (body: JsonBody, codec: Codec) =>
  outcomeOf(() => {
    const screened = new ScreenedBody(body, codec, CALLER);
    const granted = screened.permissions.withGranted({} as Prompt);
    return { dropped: screened.dropped, granted, value: screened.body.value };
  });

/** Checks that a body is refused, screened and decoded alike, whether it is scanned or parsed. @returns whether it was scanned */
async function assertAlike(codec: PlainCodec, text: string, bytes = encoder.encode(text)): Promise<boolean> {
  const parsed = await outcomeOf(() => parseBody(bytes));
  const read = await outcomeOf(() => scan(codec, bytes));
  assertEquals(read.error, parsed.error, text);
  const [body, whole] = [read.value, parsed.value];
  if (body?.scanned === undefined || whole === undefined) return false;
  const { head, sizes } = body.scanned;
  if (!acceptsHead(codec.schema, codec.plain.contents.shapes.keys(), head)) return false;
  checkBody(codec.schema, whole.value);
  assertEquals(await screened(body, codec), await screened(whole, codec), text);
  assertEquals(body.members, whole.members, text);
  assertStrictEquals(body.text, whole.text);
  const permits = screenOrNone(whole, codec);
  if (permits === undefined) return false;
  const plain = await outcomeOf(() => codec.plain.readPrompt(head, sizes, () => body.value));
  const eager = await outcomeOf(() => codec.readPrompt(whole.value, permits));
  assertEquals(plain.error, eager.error, text);
  if (plain.value === undefined || eager.value === undefined) return true;
  assertEquals({ ...plain.value }, { ...eager.value }, text);
  if (plain.value.plain !== undefined) {
    assertEquals(plain.value.plain.tools, eager.value.tools.length);
    assertEquals(isEstimated(plain.value), isEstimated(eager.value), text);
    const counted = await countPrompt(eager.value, await loadTokenCounter());
    assertGreaterOrEqual(tokenBound(plain.value, MODEL).input, counted, text);
  }
  return true;
}

function screenOrNone(body: JsonBody, codec: Codec) {
  try {
    return new ScreenedBody(body, codec, CALLER);
  } catch {
    return undefined;
  }
}

for (const { codec, body } of AGENTS) {
  Deno.test(`a ${codec.protocol} request of a coding agent is recognized in any spelling`, async () => {
    for (
      const text of [
        JSON.stringify(body),
        JSON.stringify(body, null, "\t"),
        JSON.stringify(body).replace(/é/g, "\\u00e9"),
      ]
    ) {
      assert(await assertAlike(codec, text), text);
    }
  });
}

Deno.test("images that are not decoded count for limits as decoded ones do", async () => {
  const part = (url: string) => ({ type: "image_url", image_url: { url } });
  const bodyOf = (...urls: string[]) =>
    JSON.stringify({ model: "m", messages: [{ role: "user", content: urls.map(part) }], stream: true });
  const urls = [`data:image/png;base64,${PNG}`, "data:image/gif;base64,AAAA"];
  const { scanned } = await scan(plain(chat), encoder.encode(bodyOf(...urls)));
  assert(scanned !== undefined);
  const codes = scanned.sizes.images?.read().map((text) => [text.charCodeAt(0), text.charCodeAt(4)]);
  assertEquals(codes, [[PNG.charCodeAt(0), PNG.charCodeAt(4)], [0x41, NaN]]);
  const never = () => {
    throw new Error("The messages were decoded");
  };
  const undecoded = plain(chat).plain.readPrompt(scanned.head, scanned.sizes, never);
  const decoded = chat.readPrompt(JSON.parse(bodyOf(...urls)));
  assertEquals(estimateTokens(undecoded, MODEL), estimateTokens(decoded, MODEL));
  // More images than allowed are for the reader, which refuses them.
  const many = await scan(plain(chat), encoder.encode(bodyOf(...Array.from({ length: 65 }, () => urls[0] ?? ""))));
  assertStrictEquals(many.scanned, undefined);
});

Deno.test("golden requests are checked and decoded alike, scanned or parsed", async () => {
  const codecs = { chat: plain(chat), responses: plain(responses), messages: plain(messages) };
  let recognized = 0;
  for (const { from, bodies } of REQUESTS) {
    if (from === "gemini") continue;
    for (const body of Object.values(bodies)) {
      if (await assertAlike(codecs[from], JSON.stringify(body))) recognized++;
    }
  }
  assertGreaterOrEqual(recognized, 10);
});

/** Names and values that a look-alike may have. */
const NAMES = "type Type file_id image_url cache_control __proto__ tools content role name input".split(" ");
const VALUES: readonly Json[] = [
  ...[
    "web_search",
    "image_url",
    "input_image",
    "function",
    "custom",
    "tool",
    "user",
    "assistant",
    "system",
    "",
    "sluice1.e30",
  ],
  ...[null, 1, -0.5, true, [], {}, ["x"], { type: "text" }, { type: "ephemeral" }],
];

Deno.test(`randomly mutated requests are checked and decoded alike (seed ${seedOf()})`, async () => {
  const random = seeded(seedOf());
  let recognized = 0;
  for (let round = rounds(4_000); round > 0; round--) {
    const { codec, body } = random.pick(AGENTS);
    const changed = structuredClone(body) as JsonObject;
    for (let change = random.below(3); change >= 0; change--) mutate(changed);
    let text = JSON.stringify(changed, null, random.pick(["", " ", "\n"]));
    if (random.chance(0.2)) text = misspell(text);
    if (await assertAlike(codec, text)) recognized++;
  }
  // Most changes make a body that is parsed.

  assertGreaterOrEqual(recognized, rounds(400));

  /** Changes one value somewhere: replaces it, renames it, removes it, or repeats it. */
  function mutate(root: JsonObject): void {
    let holder: JsonObject | Json[] = root;
    for (;;) {
      const names: (string | number)[] = Array.isArray(holder) ? [...holder.keys()] : Object.keys(holder);
      if (names.length === 0) return;
      const name = random.pick(names);
      const inner: Json | undefined = (holder as JsonObject)[name];
      if ((isObject(inner) || Array.isArray(inner)) && random.chance(0.8)) {
        holder = inner;
        continue;
      }
      if (Array.isArray(holder)) {
        if (random.chance(0.5)) holder[Number(name)] = anyValue();
        else holder.push(structuredClone(inner ?? null));
        return;
      }
      const way = random.below(4);
      if (way === 0) delete holder[name];
      else if (way === 1) put(holder, random.pick(NAMES), anyValue());
      else if (way === 2) put(holder, String(name), anyValue());
      else {
        delete holder[name];
        put(holder, random.pick(NAMES), inner ?? null);
      }
      return;
    }
  }

  function anyValue(): Json {
    return structuredClone(random.pick(VALUES));
  }

  function put(holder: JsonObject, name: string, value: Json): void {
    Object.defineProperty(holder, name, { value, enumerable: true, configurable: true, writable: true });
  }

  /** Writes a letter as an escape, repeats a member, or breaks the text. */
  function misspell(text: string): string {
    const at = random.below(text.length);
    switch (random.below(3)) {
      case 0:
        return text.slice(0, at) +
          text.slice(at).replace(/[a-z]/, (letter) => `\\u00${letter.charCodeAt(0).toString(16)}`);
      case 1:
        return text.slice(0, at) + text.slice(at).replace(/"(type|role|content)":/, '"$1":"web_search","$1":');
      default:
        return text.slice(0, at) + random.pick(["", '"', "\\", ",", "}", "\u0001", "1", "\ufffd", "\\ud800"]) +
          text.slice(at + 1);
    }
  }
});

function seedOf(): number {
  return Number(Deno.env.get("SEED") ?? 20261123);
}

Deno.test("a replacement character is read like any other", async () => {
  const texts = [
    { model: "\ufffd", messages: [{ role: "user", content: "x" }] },
    { model: "m", "\ufffd": 1, messages: [{ role: "user", content: "\ufffd" }] },
    { model: "m", messages: [{ role: "user", content: "x", "\ufffd": 1 }] },
    {
      model: "m",
      messages: [{ role: "user", content: "x" }],
      tools: [{ type: "function", function: { name: "f", parameters: { "\ufffd": "\ufffd" } } }],
    },
  ];
  for (const text of texts) await assertAlike(plain(chat), JSON.stringify(text));
});

Deno.test(`randomly mutated bytes are checked and decoded alike (seed ${seedOf()})`, async () => {
  const random = seeded(seedOf());
  for (let round = rounds(4_000); round > 0; round--) {
    const { codec, body } = random.pick(AGENTS);
    const bytes = encoder.encode(JSON.stringify(body));
    bytes[random.below(bytes.length)] = random.below(256);
    await assertAlike(codec, new TextDecoder().decode(bytes), bytes);
  }
});

Deno.test("look-alikes of hosted tools, files and images are not recognized", async () => {
  const bodyOf = (members: JsonObject) =>
    JSON.stringify({ model: "m", messages: [{ role: "user", content: "x" }], ...members });
  const tool = { type: "function", function: { name: "f" } };
  const user = (part: JsonObject) => bodyOf({ messages: [{ role: "user", content: [part] }] });
  const IMAGE = { type: "image_url", image_url: { url: `data:image/png;base64,${PNG}` } };
  const hidden = [
    bodyOf({ tools: [{ type: "web_search" }] }),
    bodyOf({ tools: [tool] }).replace('"function"', '"\\u0077eb_search"'),
    bodyOf({ tools: [tool] }).replace('"type"', '"\\u0074ype"'),
    bodyOf({ tools: [tool] }).replace('"type":"function"', '"type":"web_search","type":"function"'),
    bodyOf({ tools: [tool] }).replace('"type":"function"', '"type":"function","type":"web_search"'),
    bodyOf({ tools: [tool] }).replace('"type":"function"', '"Type":"web_search","type":"function"'),
    bodyOf({ tools: [{ ...tool, server_url: "https://x" }] }),
    bodyOf({ tools: [{ function: { name: "web_search" } }] }),
    user({ type: "image_url", image_url: { url: "gs://bucket/x" } }),
    user({ type: "text", text: "x", image_url: "gs://bucket/x" }),
    ...["data:image/svg+xml;base64,AAAA", "data:image/png;base64,AAA", "data:image/png;base64,AA A", "data:image/png,x"]
      .map((url) => user({ type: "image_url", image_url: { url } })),
    bodyOf({ messages: [{ role: "system", content: [IMAGE] }] }),
    user({ type: "file", file: { file_id: "file-1" } }),
    user({ type: "text", text: "x", file_id: "file-1" }),
    bodyOf({
      messages: [{ role: "tool", tool_call_id: "c", content: [{ type: "image_url", image_url: { url: "x" } }] }],
    }),
    bodyOf({ messages: [{ role: "user", content: "x", audio: { id: "a" } }] }),
  ];
  for (const text of hidden) {
    const body = await outcomeOf(() => scan(plain(chat), encoder.encode(text)));
    assertStrictEquals(body.value?.scanned, undefined, text);
  }
  const harmless = bodyOf({
    messages: [{ role: "user", content: '{"tools":[{"type":"web_search"}],"image_url":{"url":"gs://x"}}' }],
    tools: [{
      type: "function",
      function: { name: "f", parameters: { type: "object", properties: { type: { const: "web_search" } } } },
    }],
  });
  assert((await scan(plain(chat), encoder.encode(harmless))).scanned !== undefined);
});
