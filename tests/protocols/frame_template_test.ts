import { assert, assertEquals } from "@std/assert";
import { type Json, type JsonObject, parseJson } from "../../lib/json/mod.ts";
import { templateEdit, templateParser, type TemplateRule } from "../../lib/protocols/frame_template.ts";
import { chatTemplateRule } from "../../lib/protocols/chat/read_stream.ts";
import { messagesTemplateRule } from "../../lib/protocols/messages/read_stream.ts";
import { responsesTemplateRule } from "../../lib/protocols/responses/read_stream.ts";
import { skipInQuick } from "../support/skip.ts";

/** Contents in JSON: other notations, values that are no strings, values in other places. */
const INSIDES = [
  ...' word|word|a longer piece of text than those before it|\\n|\\"|\\\\|\\\\\\"|\\u00e9|\\ud83d|é€😀\u2028|model|content|text'
    .split("|"),
  ...'{}|[]|1|,|\ue000sluice\ue000|12345678987654|"|\\|\\"|\\x|\t|\u0000|","content":"twice|"}'.split("|"),
  "",
];

/** Frames in each protocol's own spelling and in others. */
const FRAMES: readonly { name: string; likeness: TemplateRule; frame: (inside: string, number: number) => string }[] = [
  {
    name: "chat",
    likeness: chatTemplateRule,
    frame: (inside) =>
      `{"id":"c","created":1,"model":"model","choices":[{"index":0,"delta":{"role":"assistant","content":"${inside}"},` +
      `"logprobs":null,"finish_reason":null}],"usage":null}`,
  },
  {
    name: "chat with padding",
    likeness: chatTemplateRule,
    frame: (inside, number) =>
      ` { "model" : "m\\u006fdel", "choices" : [ {"delta" : {"content" : "${inside}" } } ], "x": 1.0,` +
      ` "obfuscation" : "${"x".repeat(number % 5)}" } `,
  },
  {
    name: "chat with a name twice",
    likeness: chatTemplateRule,
    frame: (inside) => `{"choices":[{"delta":{"content":"${inside}","content":"word"}}],"choices":[]}`,
  },
  {
    name: "chat with reasoning",
    likeness: chatTemplateRule,
    frame: (inside, number) =>
      `{"choices":[{"delta":{"reasoning_content":"${inside}"}}],"created":${number},"usage":{"prompt_tokens":1}}`,
  },
  {
    name: "messages",
    likeness: messagesTemplateRule,
    frame: (inside, number) =>
      `{"type":"content_block_delta","index":${number % 3},"delta":{"type":"text_delta","text":"${inside}"}}`,
  },
  {
    name: "responses",
    likeness: responsesTemplateRule,
    frame: (inside, number) =>
      `{"type":"response.output_text.delta","sequence_number":${number},"item_id":"i","delta":"${inside}","logprobs":[],` +
      `"obfuscation":"${'\\"'.repeat(number % 3)}"}`,
  },
  {
    name: "responses with odd numbers",
    likeness: responsesTemplateRule,
    frame: (inside, number) =>
      `{"delta":"${inside}","sequence_number":${["1.0", "-1", "01", '"1"', "1e3", "7"][number % 6]}}`,
  },
];

function tryParse(text: string): Json | undefined {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** All members of a value except the unread ones. */
function read(value: Json | undefined, { unread }: TemplateRule): string {
  return JSON.stringify(value, (name, member) => unread.includes(name) ? undefined : member) ?? "";
}

const BEFORE = skipInQuick("Most texts before a frame") ? INSIDES.filter((_, at) => at % 8 === 0) : INSIDES;

Deno.test("templateParser() reads every frame as if alone", () => {
  let number = 0;
  for (const { name, likeness, frame } of FRAMES) {
    for (const before of BEFORE) {
      for (const inside of INSIDES) {
        const parse = templateParser(tryParse, likeness);
        for (
          const text of [before, before, inside, "word", inside, before].map((content) => frame(content, number++))
        ) {
          assertEquals(read(parse(text), likeness), read(tryParse(text), likeness), `${name}: ${text}`);
        }
      }
    }
  }
});

Deno.test("templateEdit() edits every frame as if alone", () => {
  const edit = (text: string) =>
    tryParse(text) === undefined ? undefined : text.replace(/"(created|model)"(?=\s*:)/, '"edited"');
  let number = 0;
  for (const { name, likeness, frame } of FRAMES) {
    for (const before of BEFORE) {
      for (const inside of INSIDES) {
        const alike = templateEdit(edit, likeness);
        for (
          const text of [before, before, inside, "word", inside, before].map((content) => frame(content, number++))
        ) {
          assertEquals(alike(text), edit(text), `${name}: ${text}`);
        }
      }
    }
  }
});

Deno.test("matching frames are parsed and edited once, and others cost a few tries", () => {
  for (const { name, likeness, frame } of FRAMES.filter(({ name }) => ["chat", "responses"].includes(name))) {
    let calls = 0;
    const counted = (text: string) => {
      calls++;
      return tryParse(text);
    };
    const parse = templateParser(counted, likeness);
    const values = new Set<Json | undefined>();
    for (let at = 0; at < 1_000; at++) values.add(parse(frame(`word ${at}`, at)));
    assert(calls < 5 && values.size === 1, `${name}: ${calls} times parsed`);
  }
  let calls = 0;
  const parse = templateParser((text) => (calls++, tryParse(text)), messagesTemplateRule);
  const piece = (at: number): JsonObject => ({ index: at, delta: { type: "text_delta", text: "word" } });
  for (let at = 0; at < 1_000; at++) parse(JSON.stringify(piece(at)));
  assert(calls < 1_010, `${calls} times parsed`);
});

Deno.test("a frame nested too deeply for a template is still read", () => {
  for (const depth of [1_000, 3_000, 10_000]) {
    const frame = (word: string) =>
      `{"choices":[{"delta":{"content":"${word}"},"deep":${"[".repeat(depth)}${"]".repeat(depth)}}]}`;
    const parse = templateParser((text) => JSON.parse(text), chatTemplateRule);
    for (const word of ["one", "two", "three"]) {
      const value = parse(frame(word)) as { choices: { delta: { content: string } }[] };
      assertEquals(value.choices[0]?.delta.content, word);
    }
  }
});
