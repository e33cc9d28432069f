/** The worst requests that the limits allow, for `stalls.ts`. */
import { noisePng } from "./suite/images.ts";

const MB = 1_000_000;

/** An expensive request. */
export interface Trial {
  name: string;
  path: string;
  admin?: boolean;
  /** Absent: GET without a body, POST with one. */
  method?: string;
  /** Absent: there is none. */
  body?: () => string | FormData;
  /** True if the body is sent compressed. */
  gzip?: boolean;
  /** Number of simultaneous requests; absent: one. */
  concurrency?: number;
  /** Additional members of the configuration, by the number of the run; absent: none. */
  config?: (time: number) => object;
}

const user = (model: string, content: unknown, rest: object = {}) =>
  JSON.stringify({ model, messages: [{ role: "user", content }], ...rest });
const han = (chars: number) =>
  Array.from({ length: chars }, (_, at) => String.fromCharCode(0x4e00 + at * 7919 % 20_000)).join("");
const count = (content: string) => () => user("messages/json", content, { max_tokens: 16 });
/** Paths that are called with the headers of the messages protocol. */
export const COUNT = "/anthropic/v1/messages/count_tokens";
const CHAT = "/v1/chat/completions";
export const MESSAGES = "/anthropic/v1/messages";

function upload(images: number): FormData {
  const form = new FormData();
  form.set("model", "sluice/canvas");
  form.set("prompt", "a fox");
  form.set("quality", "low");
  form.set("size", "1024x1024");
  const png = noisePng({ width: 3840, height: 2160 });
  for (let number = 0; number < images; number++) {
    form.append("image[]", new Blob([png], { type: "image/png" }), "p.png");
  }
  return form;
}

const image = (rest: object) => () =>
  JSON.stringify({ model: "sluice/canvas", prompt: "a fox", quality: "high", size: "3840x2160", ...rest });

/** All requests. `rows` and `keys` are the numbers of the ledger's rows and keys. */
export const trialsOf = ({ rows, keys }: { rows: string; keys: string }): readonly Trial[] => [
  { name: "1 KB request", path: CHAT, body: () => user("chat/json", "hello") },
  { name: "counting 1 MB of one letter", path: COUNT, body: count("a".repeat(MB)) },
  { name: "counting 1 MB of spaces", path: COUNT, body: count(" ".repeat(MB)) },
  { name: "counting 1 MB of Han", path: COUNT, body: count(han(MB / 3)) },
  { name: "counting 1 MB of one Han character", path: COUNT, body: count("字".repeat(MB / 3)) },
  { name: "counting 30 MB of prose", path: COUNT, body: count("All of it was said before. ".repeat(30 * MB / 27)) },
  { name: "echo of 1 MB of Han", path: CHAT, body: () => user("sluice/echo", han(MB / 3)) },
  {
    name: "a tool of 30 MB of quotes",
    path: CHAT,
    body: () => withTool(JSON.stringify('"'.repeat(15 * MB))),
  },
  { name: "30 MB in one message, relayed", path: CHAT, body: () => user("chat/json", "x".repeat(30 * MB)) },
  { name: "30 MB in one message, translated", path: CHAT, body: () => user("messages/json", "x".repeat(30 * MB)) },
  { name: "30 MB of Han in one message, relayed", path: CHAT, body: () => user("chat/json", "字".repeat(10 * MB)) },
  { name: "30 MB of escapes, translated", path: CHAT, body: () => user("messages/json", "\n".repeat(15 * MB)) },
  { name: "30 MB of escapes, relayed", path: CHAT, body: () => user("chat/json", "\n".repeat(15 * MB)) },
  { name: "30 MB of quotes, translated", path: CHAT, body: () => user("messages/json", '"'.repeat(15 * MB)) },
  {
    name: "30 MB of halves of characters, translated",
    path: CHAT,
    body: () => user("messages/json", "\ud800".repeat(5 * MB)),
  },
  { name: "30 MB of escapes, the last one bad", path: CHAT, body: () => badEscape() },
  { name: "30 MB of spaces", path: CHAT, body: () => user("chat/json", "x").replace(/}$/, `${" ".repeat(30 * MB)}}`) },
  { name: "190,000 numbers to be kept", path: CHAT, body: () => withTool(`[${"1.0,".repeat(190_000)}1]`) },
  { name: "190,000 long numbers", path: CHAT, body: () => withTool(`[${`${"1".repeat(150)},`.repeat(190_000)}1]`) },
  { name: "190,000 names", path: CHAT, body: () => withTool(`[${Array.from({ length: 19 }, names).join(",")}]`) },
  {
    name: "a call with an argument of 15 MB, translated",
    path: CHAT,
    body: () => called(JSON.stringify({ text: "\n".repeat(5 * MB) })),
  },
  {
    name: "a call with 30 MB of quotes, translated",
    path: CHAT,
    body: () => called(JSON.stringify({ text: '"'.repeat(7 * MB) })),
  },
  {
    name: "a call with 190,000 names, translated",
    path: CHAT,
    body: () => called(`{"list":[${Array.from({ length: 19 }, names).join(",")}]}`),
  },
  {
    name: "a call whose input is 30 MB of quotes, relayed",
    path: MESSAGES,
    body: () => calledWith("messages/json", JSON.stringify({ text: '"'.repeat(15 * MB) })),
  },
  {
    name: "a call whose input is 30 MB of quotes, translated",
    path: MESSAGES,
    body: () => calledWith("chat/json", JSON.stringify({ text: '"'.repeat(15 * MB) })),
  },
  {
    name: "a call whose input is 190,000 names, translated",
    path: MESSAGES,
    body: () => calledWith("chat/json", `{"list":[${Array.from({ length: 19 }, names).join(",")}]}`),
  },
  {
    name: "30 MB of Han in one message, translated",
    path: CHAT,
    body: () => user("messages/json", "字".repeat(10 * MB)),
  },
  { name: "30 MB of escapes, compressed", path: CHAT, gzip: true, body: () => user("chat/json", "\n".repeat(15 * MB)) },
  { name: "30,000 calls of one id, translated", path: CHAT, body: () => manyCalls(() => "c") },
  { name: "30,000 calls with illegal ids, translated", path: CHAT, body: () => manyCalls((at) => `c!${at}`) },
  {
    name: "28,000 calls with illegal names, translated",
    path: CHAT,
    body: () => manyCalls((at) => `c${at}`, (at) => `f!${at}`),
  },
  ...odd(),
  { name: "30 MB in 4,000 messages, relayed", path: CHAT, body: () => conversation("chat/json", 1) },
  { name: "30 MB in 4,000 messages, translated", path: CHAT, body: () => conversation("messages/json", 1) },
  { name: "30 MB in 40,000 parts, relayed", path: CHAT, body: () => conversation("chat/json", 10) },
  { name: "30 MB in 40,000 parts, translated", path: CHAT, body: () => conversation("messages/json", 10) },
  {
    name: "30 MB of brackets",
    path: CHAT,
    body: () => `{"model":"chat/json","messages":${"[".repeat(15 * MB)}${"]".repeat(15 * MB)}}`,
  },
  { name: "30 MB of members", path: CHAT, body: () => members(2 * MB) },
  {
    name: "an image of 30 MB in a message, translated",
    path: CHAT,
    body: () =>
      user("messages/json", [{
        type: "image_url",
        image_url: { url: `data:image/png;base64,${"A".repeat(30 * MB)}` },
      }]),
  },
  { name: "form of 50 MB, two images", path: "/v1/images/edits", body: () => upload(2) },
  { name: "4K image, PNG", path: "/v1/images/generations", body: image({}) },
  { name: "4K image, WebP", path: "/v1/images/generations", body: image({ output_format: "webp" }) },
  {
    name: "4K image, streamed with 3 partial ones",
    path: "/v1/images/generations",
    body: image({ stream: true, partial_images: 3 }),
  },
  {
    name: "a result with 30 MB of quotes, to an upstream of objects",
    path: CHAT,
    body: () => answered(JSON.stringify({ text: '"'.repeat(7 * MB) })),
  },
  {
    name: "a result with 190,000 names, to an upstream of objects",
    path: CHAT,
    body: () => answered(`{"list":[${Array.from({ length: 19 }, names).join(",")}]}`),
  },
  {
    name: "1,000 results of 30 KB each, to an upstream of objects",
    path: CHAT,
    body: () => answered(...Array.from({ length: 1000 }, () => JSON.stringify({ text: "\n".repeat(10_000) }))),
  },
  {
    name: "60 calls with 16,000 zeros each, translated",
    path: CHAT,
    body: () => called(...Array.from({ length: 60 }, () => `{"list":[${"-0,".repeat(16_000)}1]}`)),
  },
  { name: "counting a word of 30 MB", path: COUNT, body: count("a".repeat(30 * MB)) },
  { name: "counting 30 MB of capitals and Han", path: COUNT, body: count("A字".repeat(7 * MB)) },
  { name: "counting a character of each 256", path: COUNT, body: count(ofEachPage()) },
  {
    name: "counting a tool of 30 MB",
    path: COUNT,
    body: () =>
      user("messages/json", "x", {
        max_tokens: 16,
        tools: [{ name: "f", input_schema: { type: "object", default: '"'.repeat(15 * MB) } }],
      }),
  },
  {
    name: "two with 30 MB of quotes, translated",
    path: CHAT,
    concurrency: 2,
    body: () => user("messages/json", '"'.repeat(15 * MB)),
  },
  {
    name: "two with 30 MB in one message, relayed",
    path: CHAT,
    concurrency: 2,
    body: () => user("chat/json", "x".repeat(30 * MB)),
  },
  {
    name: "four with 30 MB in 40,000 parts, translated",
    path: CHAT,
    concurrency: 4,
    body: () => conversation("messages/json", 10),
  },
  {
    name: "four with 190,000 names",
    path: CHAT,
    concurrency: 4,
    body: () => withTool(`[${Array.from({ length: 19 }, names).join(",")}]`),
  },
  ...answers(),
  {
    name: "a reload that brings in the budget of a group",
    path: "/admin/v1/reload",
    admin: true,
    method: "POST",
    config: (time) => {
      const period = ["total", "month", "week"][time % 3];
      return { groups: { default: { budget: { usd: "1000", period } } } };
    },
  },
  ...["key", "model", "day"].map((by) => ({
    name: `usage of ${rows} rows by ${by}`,
    path: `/admin/v1/usage?since=30d&by=${by}`,
    admin: true,
  })),
  {
    name: `usage of ${rows} rows, pieces of days`,
    path: `/admin/v1/usage?since=${new Date(Date.now() - 700 * 3_600_000).toISOString()}&by=key`,
    admin: true,
  },
  {
    name: `usage of a day with ${keys} keys by key`,
    path: "/admin/v1/usage?since=40d&by=key",
    admin: true,
  },
  { name: `audit of ${rows} rows`, path: "/admin/v1/audit", admin: true, method: "POST" },
  { name: `list of ${keys} keys`, path: "/admin/v1/keys", admin: true },
  { name: "metrics", path: "/metrics" },
  { name: "catalog", path: "/v1/models" },
];

/** 4,000 messages, close to the limit, each with this many parts. */
function conversation(model: string, parts: number): string {
  const messages = 4_000;
  const text = "x".repeat(30 * MB / messages / parts - 60);
  const content = parts === 1 ? text : Array.from({ length: parts }, () => ({ type: "text", text }));
  return JSON.stringify({
    model,
    messages: Array.from({ length: messages }, (_, at) => ({ role: at % 2 === 0 ? "user" : "assistant", content })),
  });
}

function badEscape(): string {
  return user("chat/json", "\n".repeat(15 * MB)).replace(/"}\]}$/, '\\q"}]}');
}

/** A request with a tool whose schema contains this. */
function withTool(json: string): string {
  const tool = { type: "function", function: { name: "f", parameters: { type: "object", default: "HERE" } } };
  return user("messages/json", "x", { tools: [tool] }).replace('"HERE"', json);
}

/** An object of 10,000 names, the maximum, that no other object has. */
function names(_: unknown, number: number): string {
  return `{${Array.from({ length: 9_990 }, (_, at) => `"k${number}_${at}":1`).join(",")}}`;
}

/** A conversation with calls of a tool. */
function called(...texts: string[]): string {
  return toolTalk("messages/json", { calls: texts, results: texts.map(() => "y") });
}

/** 30 messages of 1,000 calls each, without results. */
function manyCalls(id: (at: number) => string, name: (at: number) => string = () => "f"): string {
  const call = (at: number) => ({ id: id(at), type: "function", function: { name: name(at), arguments: "{}" } });
  const message = (_: unknown, at: number) => ({
    role: "assistant",
    tool_calls: Array.from({ length: 1_000 }, (_, number) => call(at * 1_000 + number)),
  });
  const messages = [{ role: "user", content: "x" }, ...Array.from({ length: 30 }, message)];
  return JSON.stringify({ model: "messages/json", messages });
}

/**
 * Requests that no real client sends: in earlier versions each of them blocked the event loop for 100 ms to minutes.
 */
function odd(): Trial[] {
  const list = <T>(length: number, of: (at: number) => T) => Array.from({ length }, (_, at) => of(at));
  const members = (count: number, of: (at: number) => [string, unknown]) => Object.fromEntries(list(count, of));
  const schema = (name: string, parameters: object): Trial => ({
    name: `a schema of ${name}, translated`,
    path: CHAT,
    body: () => user("messages/json", "x", { tools: [{ type: "function", function: { name: "f", parameters } }] }),
  });
  const gemini = (name: string, body: () => object): Trial => ({
    name: `Gemini: ${name}`,
    path: "/v1beta/models/gemini/short:generateContent",
    body: () => JSON.stringify({ contents: [{ role: "user", parts: [{ text: "x" }] }], ...body() }),
  });
  /** 60 messages of the model and the user by turns, with many blocks or parts each. */
  const turns = (model: string, of: (isModel: boolean) => object) =>
    list(60, (at) => ({ role: at % 2 === 1 ? model : "user", ...of(at % 2 === 1) }));
  return [
    schema("900 branches with 90 members each", {
      anyOf: list(900, (branch) => ({ type: "object", properties: members(90, (at) => [`p${branch}_${at}`, true]) })),
    }),
    schema("300 references to 900 members", {
      $defs: { large: { properties: members(900, (at) => [`p${at}`, {}]) } },
      allOf: list(300, () => ({ $ref: "#/$defs/large" })),
    }),
    schema("two lists of 90,000 types", {
      type: list(90_000, (at) => `t${at}`),
      allOf: [{ type: list(90_000, (at) => `u${at}`) }],
    }),
    {
      name: "an answer's schema with 100,000 required names, translated",
      path: MESSAGES,
      body: () => {
        const properties = members(9_900, (at) => [`p${at}`, { type: "string" }]);
        const required = [...list(100_000, (at) => `q${at}`), ...Object.keys(properties)];
        const schema = { type: "object", additionalProperties: false, properties, required };
        return user("chat/json", "x", { max_tokens: 16, output_config: { format: { type: "json_schema", schema } } });
      },
    },
    {
      name: "30,000 signed thoughts, relayed",
      path: MESSAGES,
      body: () => {
        const thought = (at: number) => ({ type: "thinking", thinking: "t", signature: `s${at}`, odd: 1 });
        const messages = turns("assistant", (isModel) => ({ content: isModel ? list(1_000, thought) : "x" }));
        return JSON.stringify({ model: "messages/json", max_tokens: 16, messages });
      },
    },
    {
      name: "30,000 calls with three mistakes each",
      path: CHAT,
      body: () => {
        const call = { id: 1, type: "function", function: {} };
        const messages = list(30, () => ({ role: "assistant", tool_calls: list(1_000, () => call) }));
        return JSON.stringify({ model: "chat/json", messages });
      },
    },
    {
      name: "1,000 misspelled members in 25 MB of tools",
      path: CHAT,
      body: () => {
        const spelled = members(4, (at) => [["TYPE", "Type", "tYPE", "NAME"][at] ?? "", 1]);
        const tool = { type: "function", function: { name: "f" }, ...spelled, x: "y".repeat(100_000) };
        return user("chat/json", "x", { tools: list(250, () => tool) });
      },
    },
    {
      name: "72,000 misspelled members of tools",
      path: CHAT,
      body: () => {
        const spellingOf = (number: number) =>
          [..."parameters"].map((letter, at) => number >> at & 1 ? letter.toUpperCase() : letter).join("");
        const tool = { type: "function", function: { name: "f" }, ...members(288, (at) => [spellingOf(at + 1), 1]) };
        return user("chat/json", "x", { tools: list(250, () => tool) });
      },
    },
    {
      name: "180,000 unknown members",
      path: CHAT,
      body: () => {
        const messages = list(4_000, (at) => ({
          role: at % 2 === 1 ? "assistant" : "user",
          content: "x",
          ...members(44, (number) => [`u${at}_${number}`, 1]),
        }));
        return JSON.stringify({ model: "messages/json", messages });
      },
    },
    gemini("60,000 parts", () => ({ contents: turns("model", () => ({ parts: list(1_000, () => ({ text: "x" })) })) })),
    gemini("a tool's schema with 160,000 values", () => ({
      contents: [{ role: "user", parts: [{ text: "x" }] }],
      tools: [{
        functionDeclarations: [{
          name: "f",
          parameters: { type: "OBJECT", properties: { a: { type: "STRING", enum: list(160_000, (at) => `v${at}`) } } },
        }],
      }],
    })),
    gemini("40,000 signed texts", () => ({
      contents: [
        { role: "user", parts: [{ text: "x" }] },
        ...list(60, () => ({
          role: "model",
          parts: list(700, (at) => ({ text: "x", thoughtSignature: btoa(`s${at}`) })),
        })),
      ],
    })),
    gemini("30 MB, a member in snake case", () => ({
      system_instruction: { parts: [{ text: "\n".repeat(14 * MB) }] },
    })),
    gemini("a result of 14 MB, sent twice", () => {
      const functionResponse = { id: "c", name: "f", response: { text: "\n".repeat(7 * MB) } };
      return {
        contents: [
          { role: "model", parts: [{ functionCall: { id: "c", name: "f", args: {} } }] },
          { role: "user", parts: [{ functionResponse }, { functionResponse }] },
        ],
      };
    }),
  ];
}

/** A conversation with results of a tool. */
function answered(...texts: string[]): string {
  return toolTalk("gemini/short", { calls: texts.map(() => "{}"), results: texts });
}

function toolTalk(model: string, { calls, results }: { calls: readonly string[]; results: readonly string[] }): string {
  const tool_calls = calls.map((json, at) => ({
    id: `call_${at}`,
    type: "function",
    function: { name: "f", arguments: json },
  }));
  return JSON.stringify({
    model,
    messages: [
      { role: "user", content: "x" },
      { role: "assistant", tool_calls },
      ...results.map((content, at) => ({ role: "tool", tool_call_id: `call_${at}`, content })),
    ],
  });
}

/** Answers of 30 MB, whole and streamed, relayed and translated. */
function answers(): Trial[] {
  const trials: Trial[] = [];
  for (const upstream of ["chat", "messages", "gemini"] as const) {
    for (const play of ["prose", "quotes", "han", "call", "names"] as const) {
      trials.push({
        name: `answer of 30 MB, ${play}, ${upstream} for chat`,
        path: CHAT,
        body: () => user(`${upstream}/${play}`, "x"),
      });
    }
  }
  trials.push({
    name: "answer of 30 MB, call, chat for messages",
    path: MESSAGES,
    body: () => user("chat/call", "x", { max_tokens: 16 }),
  });
  for (const upstream of ["chat", "messages"] as const) {
    for (const play of ["prose", "quotes", "han", "words", "events"] as const) {
      trials.push({
        name: `stream of 30 MB, ${play}, ${upstream} for chat`,
        path: CHAT,
        body: () => user(`${upstream}/${play}`, "x", { stream: true }),
      });
    }
  }
  for (const play of ["prose", "quotes", "han"] as const) {
    trials.push({
      name: `stream of 30 MB, ${play}, chat for messages`,
      path: MESSAGES,
      body: () => user(`chat/${play}`, "x", { stream: true, max_tokens: 16 }),
    });
  }
  return trials;
}

/** One character of each block of 256 code points: the class of a new character must be looked up. */
function ofEachPage(): string {
  return Array.from({ length: 0x1100 }, (_, page) => String.fromCodePoint(page * 256 + 255)).join("").toWellFormed();
}

/** The same from a client whose protocol has tool arguments as objects. */
function calledWith(model: string, json: string): string {
  const call = { type: "tool_use", id: "call_1", name: "f", input: "HERE" };
  return JSON.stringify({
    model,
    max_tokens: 16,
    messages: [
      { role: "user", content: "x" },
      { role: "assistant", content: [call] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "call_1", content: "y" }] },
    ],
  }).replace('"HERE"', () => json);
}

function members(count: number): string {
  const all = Array.from({ length: count }, (_, at) => `"m${at}":0`).join(",");
  return `{"model":"chat/json","messages":[{"role":"user","content":"x"}],"metadata":{${all}}}`;
}
