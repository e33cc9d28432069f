import { assert, assertEquals } from "@std/assert";
import { runToEnd } from "../../../lib/scheduler.ts";
import { aggregateEvents, eventsOf } from "../../../lib/protocols/canonical/aggregate_events.ts";
import type { ReplyEvent } from "../../../lib/protocols/canonical/types.ts";
import { unwrapCustomCalls, wrapCustomTools } from "../../../lib/protocols/translate/custom_tools.ts";
import { inputDecoder } from "../../../lib/protocols/translate/input_decoder.ts";
import { type Random, seeded } from "../../support/random.ts";
import { pieces } from "./random_prompt.ts";
import { promptOf, user } from "../canonical/messages.ts";
import { adapt, targetOf } from "./targets.ts";

/** Arguments as a model sends them, and the input they mean. */
const INPUTS: [string, string][] = [
  ['{"input":"a"}', "a"],
  ['{"input":""}', ""],
  [' { "input" : "two\\nlines" } ', "two\nlines"],
  ['{"input":"\\"\\\\\\/\\b\\f\\n\\r\\t"}', '"\\/\b\f\n\r\t'],
  ['{"input":"\\u00e9 \\ud83d\\ude00 😀"}', "é 😀 😀"],
  ['{"input":"\\ud83d😀"}', "\ud83d😀"],
  ['{"input":"\\ud83d"}', "\ud83d"],
  ['{"input":"\\u00","x":1}', "\\u00"],
  ['{"input":"\\q"}', "\\q"],
  ['{"input":"raw\nbreak"}', "raw\nbreak"],
  ['{"input":"first","other":{"input":"second"}}', "first"],
  ['{"other":[1,"}"],"input":"last"}', "last"],
  ['{"input":"cut sho', "cut sho"],
  ['{"input":"cut\\', "cut"],
  ['{"input":"cut\\u00e', "cut"],
  ['{"inp', '{"inp'],
  ['{"input":7}', '{"input":7}'],
  ['{"inputs":"a"}', '{"inputs":"a"}'],
  ['{"input"}', '{"input"}'],
  ["{}", "{}"],
  ["*** Begin Patch\n", "*** Begin Patch\n"],
  ['"just text"', '"just text"'],
  ['["input"]', '["input"]'],
  ["", ""],
];

Deno.test("the input of a wrapped call is decoded equally for pieces of every size", () => {
  for (const [source, input] of INPUTS) {
    for (const size of [1, 2, 3, 5, 1000]) {
      const decoder = inputDecoder();
      const given: string[] = [];
      for (let at = 0; at < source.length; at += size) given.push(decoder.push(source.slice(at, at + size)));
      given.push(decoder.end());
      assertEquals(given.join(""), input, `${source} by ${size}`);
    }
  }
});

Deno.test("any input of a wrapped call is decoded, and never with half a character", () => {
  const random = seeded(7);
  const alphabet = ["a", "é", "😀", "\\", '"', "\n", "\u0001", "{", "}", "\\u"];
  for (let round = 0; round < 500; round++) {
    const input = Array.from({ length: random.below(20) }, () => alphabet[random.below(alphabet.length)]).join("");
    const source = escapeSome(JSON.stringify({ input }), random);
    const decoder = inputDecoder();
    const given = [...pieces(source, random).map((piece) => decoder.push(piece)), decoder.end()];
    assertEquals(given.join(""), input, source);
    for (const piece of given) assertEquals(piece.isWellFormed(), true, source);
  }
});

Deno.test("the input of a wrapped call streams while it arrives", () => {
  const decoder = inputDecoder();
  assertEquals(['{"in', 'put": "', "one ", "two", '"}'].map((piece) => decoder.push(piece)), [
    "",
    "",
    "one ",
    "two",
    "",
  ]);
});

Deno.test("endless arguments are kept up to a limit", () => {
  const decoder = inputDecoder();
  const piece = `[${" ".repeat(100_000)}`;
  const given = Array.from({ length: 30 }, () => decoder.push(piece)).join("") + decoder.end();
  assertEquals(given, piece.repeat(30));
  const white = inputDecoder();
  const start = performance.now();
  const blank = Array.from({ length: 200_000 }, () => white.push(" ")).join("") + white.end();
  assertEquals(blank.length, 200_000);
  assert(performance.now() - start < 2_000);
});

Deno.test("a custom tool becomes a function that describes its grammar", () => {
  const tools = runToEnd(wrapCustomTools(promptOf([], {
    tools: [
      {
        type: "custom",
        name: "patch",
        description: "Edits files",
        format: { type: "grammar", syntax: "lark", definition: "start: LINE" },
        cache: { ttl: "5m" },
      },
      { type: "custom", name: "note", format: { type: "text" } },
    ],
    toolChoice: { type: "tool", name: "note", custom: true },
  })));
  const parameters = {
    type: "object",
    properties: { input: { type: "string" } },
    required: ["input"],
    additionalProperties: false,
  };
  assertEquals(tools.tools, [
    {
      type: "function",
      name: "patch",
      description:
        "Edits files\n\nThe input is free-form text, not JSON. It must match this lark grammar:\nstart: LINE",
      cache: { ttl: "5m" },
      parameters,
    },
    { type: "function", name: "note", description: "The input is free-form text, not JSON.", parameters },
  ]);
  assertEquals(tools.toolChoice, { type: "tool", name: "note" });
});

Deno.test("past calls and results of custom tools are wrapped too", () => {
  const { messages } = runToEnd(wrapCustomTools(promptOf([
    { role: "assistant", blocks: [{ type: "tool_call", id: "c", name: "patch", arguments: 'a "b"\n', custom: true }] },
    { role: "user", blocks: [{ type: "tool_result", callId: "c", blocks: [], custom: true }] },
  ])));
  assertEquals(messages, [
    {
      role: "assistant",
      blocks: [{
        type: "tool_call",
        id: "c",
        name: "patch",
        arguments: '{"input":"a \\"b\\"\\n"}',
        input: { input: 'a "b"\n' },
      }],
    },
    { role: "user", blocks: [{ type: "tool_result", callId: "c", blocks: [] }] },
  ]);
});

Deno.test("calls of wrapped tools come back as custom calls, others as they are", () => {
  const { restore } = adapt(
    promptOf([user("go")], {
      tools: [{ type: "custom", name: "patch", namespace: "files" }, { type: "function", name: "f" }],
    }),
    targetOf("messages"),
  );
  const machine = restore();
  const events = eventsOf({
    blocks: [
      { type: "tool_call", id: "1", name: "files__patch", arguments: '{"input":"+ line"}' },
      { type: "tool_call", id: "2", name: "f", arguments: '{"input":"+ line"}' },
      { type: "tool_call", id: "3", name: "files__patch", arguments: '{"input":""}' },
    ],
    finish: "tool_use",
    usage: {},
  });
  assertEquals(aggregateEvents(events.flatMap((event) => machine.push(event))).blocks, [
    { type: "tool_call", id: "1", name: "patch", arguments: "+ line", custom: true, namespace: "files" },
    { type: "tool_call", id: "2", name: "f", arguments: '{"input":"+ line"}' },
    { type: "tool_call", id: "3", name: "patch", arguments: "", custom: true, namespace: "files" },
  ]);
});

Deno.test("an error in the middle of a wrapped call is passed on", () => {
  const machine = unwrapCustomCalls();
  const open: ReplyEvent = { type: "open", index: 0, block: { type: "tool_call", id: "1", name: "p", custom: true } };
  const finish: ReplyEvent = { type: "finish", reason: "length", usage: {} };
  assertEquals(
    [open, { type: "delta" as const, index: 0, text: "{" }, finish].flatMap((event) => machine.push(event)),
    [
      open,
      finish,
    ],
  );
});

/** JSON text with some of its characters written as escapes. */
function escapeSome(json: string, random: Random): string {
  return json.replace(
    /[aé\ud800-\udfff]/g,
    (unit) => random.below(2) === 0 ? `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}` : unit,
  );
}
