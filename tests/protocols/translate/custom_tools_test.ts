import { assert, assertEquals } from "@std/assert";
import { runToEnd } from "../../../lib/scheduler.ts";
import { wrapCustomTools } from "../../../lib/protocols/translate/custom_tools.ts";
import { inputDecoder } from "../../../lib/protocols/translate/input_decoder.ts";
import { type Random, seeded } from "../../support/random.ts";
import { pieces } from "./random_prompt.ts";
import { promptOf } from "../canonical/messages.ts";
import { workedMs } from "../../support/turns.ts";

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
  const start = workedMs();
  const blank = Array.from({ length: 200_000 }, () => white.push(" ")).join("") + white.end();
  assertEquals(blank.length, 200_000);
  assert(workedMs() - start < 2_000);
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

/** JSON text with some of its characters written as escapes. */
function escapeSome(json: string, random: Random): string {
  return json.replace(
    /[aé\ud800-\udfff]/g,
    (unit) => random.below(2) === 0 ? `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}` : unit,
  );
}
