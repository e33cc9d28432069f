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

type Body = NonNullable<Trial["body"]>;
const trialAt = (path: string) => (name: string, body: Body): Trial => ({ name, path, body });
const chatTrial = trialAt(CHAT);
const countTrial = trialAt(COUNT);
const messagesTrial = trialAt(MESSAGES);

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
  chatTrial("1 KB request", () => user("chat/json", "hello")),
  countTrial("counting 1 MB of one letter", count("a".repeat(MB))),
  countTrial("counting 1 MB of spaces", count(" ".repeat(MB))),
  countTrial("counting 1 MB of Han", count(han(MB / 3))),
  countTrial("counting 1 MB of one Han character", count("字".repeat(MB / 3))),
  countTrial("counting 30 MB of prose", count("All of it was said before. ".repeat(30 * MB / 27))),
  chatTrial("echo of 1 MB of Han", () => user("sluice/echo", han(MB / 3))),
  chatTrial("a tool of 30 MB of quotes", () => withTool(JSON.stringify('"'.repeat(15 * MB)))),
  chatTrial("30 MB in one message, relayed", () => user("chat/json", "x".repeat(30 * MB))),
  chatTrial("30 MB in one message, translated", () => user("messages/json", "x".repeat(30 * MB))),
  chatTrial("30 MB of Han in one message, relayed", () => user("chat/json", "字".repeat(10 * MB))),
  chatTrial("30 MB of escapes, translated", () => user("messages/json", "\n".repeat(15 * MB))),
  chatTrial("30 MB of escapes, relayed", () => user("chat/json", "\n".repeat(15 * MB))),
  chatTrial("30 MB of quotes, translated", () => user("messages/json", '"'.repeat(15 * MB))),
  chatTrial("30 MB of halves of characters, translated", () => user("messages/json", "\ud800".repeat(5 * MB))),
  chatTrial("30 MB of escapes, the last one bad", () => badEscape()),
  chatTrial("30 MB of spaces", () => user("chat/json", "x").replace(/}$/, `${" ".repeat(30 * MB)}}`)),
  chatTrial("190,000 numbers to be kept", () => withTool(`[${"1.0,".repeat(190_000)}1]`)),
  chatTrial("190,000 long numbers", () => withTool(`[${`${"1".repeat(150)},`.repeat(190_000)}1]`)),
  chatTrial("190,000 names", () => withTool(manyNames())),
  chatTrial(
    "a call with an argument of 15 MB, translated",
    () => called(JSON.stringify({ text: "\n".repeat(5 * MB) })),
  ),
  chatTrial("a call with 30 MB of quotes, translated", () => called(JSON.stringify({ text: '"'.repeat(7 * MB) }))),
  chatTrial("a call with 190,000 names, translated", () => called(`{"list":${manyNames()}}`)),
  messagesTrial(
    "a call whose input is 30 MB of quotes, relayed",
    () => calledWith("messages/json", JSON.stringify({ text: '"'.repeat(15 * MB) })),
  ),
  messagesTrial(
    "a call whose input is 30 MB of quotes, translated",
    () => calledWith("chat/json", JSON.stringify({ text: '"'.repeat(15 * MB) })),
  ),
  messagesTrial(
    "a call whose input is 190,000 names, translated",
    () => calledWith("chat/json", `{"list":${manyNames()}}`),
  ),
  chatTrial("30 MB of Han in one message, translated", () => user("messages/json", "字".repeat(10 * MB))),
  { ...chatTrial("30 MB of escapes, compressed", () => user("chat/json", "\n".repeat(15 * MB))), gzip: true },
  chatTrial("30,000 calls of one id, translated", () => manyCalls(() => "c")),
  chatTrial("30,000 calls with illegal ids, translated", () => manyCalls((at) => `c!${at}`)),
  chatTrial("28,000 calls with illegal names, translated", () => manyCalls((at) => `c${at}`, (at) => `f!${at}`)),
  ...odd(),
  chatTrial("30 MB in 4,000 messages, relayed", () => conversation("chat/json", 1)),
  chatTrial("30 MB in 4,000 messages, translated", () => conversation("messages/json", 1)),
  chatTrial("30 MB in 40,000 parts, relayed", () => conversation("chat/json", 10)),
  chatTrial("30 MB in 40,000 parts, translated", () => conversation("messages/json", 10)),
  chatTrial("30 MB of brackets", () => `{"model":"chat/json","messages":${"[".repeat(15 * MB)}${"]".repeat(15 * MB)}}`),
  chatTrial("30 MB of members", () => members(2 * MB)),
  chatTrial("an image of 30 MB in a message, translated", () =>
    user("messages/json", [{
      type: "image_url",
      image_url: { url: `data:image/png;base64,${"A".repeat(30 * MB)}` },
    }])),
  { name: "form of 50 MB, two images", path: "/v1/images/edits", body: () => upload(2) },
  { name: "4K image, PNG", path: "/v1/images/generations", body: image({}) },
  { name: "4K image, WebP", path: "/v1/images/generations", body: image({ output_format: "webp" }) },
  {
    name: "4K image, streamed with 3 partial ones",
    path: "/v1/images/generations",
    body: image({ stream: true, partial_images: 3 }),
  },
  chatTrial(
    "a result with 30 MB of quotes, to an upstream of objects",
    () => answered(JSON.stringify({ text: '"'.repeat(7 * MB) })),
  ),
  chatTrial("a result with 190,000 names, to an upstream of objects", () => answered(`{"list":${manyNames()}}`)),
  chatTrial(
    "1,000 results of 30 KB each, to an upstream of objects",
    () => answered(...Array.from({ length: 1000 }, () => JSON.stringify({ text: "\n".repeat(10_000) }))),
  ),
  chatTrial(
    "60 calls with 16,000 zeros each, translated",
    () => called(...Array.from({ length: 60 }, () => `{"list":[${"-0,".repeat(16_000)}1]}`)),
  ),
  countTrial("counting a word of 30 MB", count("a".repeat(30 * MB))),
  countTrial("counting 30 MB of capitals and Han", count("A字".repeat(7 * MB))),
  countTrial("counting a character of each 256", count(ofEachPage())),
  countTrial("counting a tool of 30 MB", () =>
    user("messages/json", "x", {
      max_tokens: 16,
      tools: [{ name: "f", input_schema: { type: "object", default: '"'.repeat(15 * MB) } }],
    })),
  {
    ...chatTrial("two with 30 MB of quotes, translated", () => user("messages/json", '"'.repeat(15 * MB))),
    concurrency: 2,
  },
  {
    ...chatTrial("two with 30 MB in one message, relayed", () => user("chat/json", "x".repeat(30 * MB))),
    concurrency: 2,
  },
  {
    ...chatTrial("four with 30 MB in 40,000 parts, translated", () => conversation("messages/json", 10)),
    concurrency: 4,
  },
  { ...chatTrial("four with 190,000 names", () => withTool(manyNames())), concurrency: 4 },
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

/** A list of objects with 190,000 names. */
function manyNames(): string {
  return `[${Array.from({ length: 19 }, names).join(",")}]`;
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
    messagesTrial("an answer's schema with 100,000 required names, translated", () => {
      const properties = members(9_900, (at) => [`p${at}`, { type: "string" }]);
      const required = [...list(100_000, (at) => `q${at}`), ...Object.keys(properties)];
      const schema = { type: "object", additionalProperties: false, properties, required };
      return user("chat/json", "x", { max_tokens: 16, output_config: { format: { type: "json_schema", schema } } });
    }),
    messagesTrial("30,000 signed thoughts, relayed", () => {
      const thought = (at: number) => ({ type: "thinking", thinking: "t", signature: `s${at}`, odd: 1 });
      const messages = turns("assistant", (isModel) => ({ content: isModel ? list(1_000, thought) : "x" }));
      return JSON.stringify({ model: "messages/json", max_tokens: 16, messages });
    }),
    chatTrial("30,000 calls with three mistakes each", () => {
      const call = { id: 1, type: "function", function: {} };
      const messages = list(30, () => ({ role: "assistant", tool_calls: list(1_000, () => call) }));
      return JSON.stringify({ model: "chat/json", messages });
    }),
    chatTrial("1,000 misspelled members in 25 MB of tools", () => {
      const spelled = members(4, (at) => [["TYPE", "Type", "tYPE", "NAME"][at] ?? "", 1]);
      const tool = { type: "function", function: { name: "f" }, ...spelled, x: "y".repeat(100_000) };
      return user("chat/json", "x", { tools: list(250, () => tool) });
    }),
    chatTrial("72,000 misspelled members of tools", () => {
      const spellingOf = (number: number) =>
        [..."parameters"].map((letter, at) => number >> at & 1 ? letter.toUpperCase() : letter).join("");
      const tool = { type: "function", function: { name: "f" }, ...members(288, (at) => [spellingOf(at + 1), 1]) };
      return user("chat/json", "x", { tools: list(250, () => tool) });
    }),
    chatTrial("180,000 unknown members", () => {
      const messages = list(4_000, (at) => ({
        role: at % 2 === 1 ? "assistant" : "user",
        content: "x",
        ...members(44, (number) => [`u${at}_${number}`, 1]),
      }));
      return JSON.stringify({ model: "messages/json", messages });
    }),
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
      trials.push(chatTrial(`answer of 30 MB, ${play}, ${upstream} for chat`, () => user(`${upstream}/${play}`, "x")));
    }
  }
  trials.push(
    messagesTrial("answer of 30 MB, call, chat for messages", () => user("chat/call", "x", { max_tokens: 16 })),
  );
  for (const upstream of ["chat", "messages"] as const) {
    for (const play of ["prose", "quotes", "han", "words", "events"] as const) {
      trials.push(
        chatTrial(
          `stream of 30 MB, ${play}, ${upstream} for chat`,
          () => user(`${upstream}/${play}`, "x", { stream: true }),
        ),
      );
    }
  }
  for (const play of ["prose", "quotes", "han"] as const) {
    trials.push(
      messagesTrial(
        `stream of 30 MB, ${play}, chat for messages`,
        () => user(`chat/${play}`, "x", { stream: true, max_tokens: 16 }),
      ),
    );
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
