import { assertEquals, assertLess } from "@std/assert";
import { type CallableTool, readDirectives } from "../../../lib/upstreams/embedded/directives.ts";

const tools: CallableTool[] = [
  { type: "function", name: "a" },
  { type: "function", name: "b", namespace: "n" },
  { type: "custom", name: "patch" },
];

/** Text; its directives as `name` or `name input`; the remaining text. */
const cases: [string, string[], string][] = [
  ["hello", [], "hello"],
  ["  hello \n", [], "  hello \n"],
  ["call:a", ["a"], ""],
  ["call:a {}", ["a {}"], ""],
  ["call:a{}", ["a {}"], ""],
  ['  call:a   {"x": 1}  ', ['a {"x": 1}'], ""],
  ['call:a {"id":12345678901234567890}', ['a {"id":12345678901234567890}'], ""],
  ['call:a {"s":"}\\"{"}', ['a {"s":"}\\"{"}'], ""],
  ['call:a {\n "x": [\n  {}\n ]\n}', ['a {\n "x": [\n  {}\n ]\n}'], ""],
  ["please\ncall:a {}\nthanks", ["a {}"], "please\nthanks"],
  ["please\r\ncall:a {}\r\nthanks", ["a {}"], "please\nthanks"],
  ["call:a {}\ncall:a {}\ncall:b", ["a {}", "a {}", "b"], ""],
  ["call:a {} call:b {} rest", ["a {}", "b {}"], "rest"],
  ["call:a now", ["a"], "now"],
  ["call:a [1]", ["a"], "[1]"],
  ["call:n.b", ["b"], ""],
  ["call:patch *** Begin {\ncall:a", ["patch *** Begin {", "a"], ""],
  ["call:patch", ["patch"], ""],
  ['call:patch {"input":"a\\nb"}', ["patch a\nb"], ""],
  ['call:patch {"input":"a"}  \ncall:a', ["patch a", "a"], ""],
  ['call:patch {"input":"a","more":1}', ['patch {"input":"a","more":1}'], ""],
  ['call:patch {"input":1}', ['patch {"input":1}'], ""],
  ['call:patch {"input":"a"} b', ['patch {"input":"a"} b'], ""],
  ["call:patch\n```\n*** Begin\n+a\n\n*** End\n```\nthanks", ["patch *** Begin\n+a\n\n*** End"], "thanks"],
  ["do it\ncall:patch  \n  ```diff\r\n a\r\n b\r\n  ```\r\ncall:a {}", ["patch  a\r\n b", "a {}"], "do it"],
  ["call:patch\n````\n```\ncall:a\n```\n````", ["patch ```\ncall:a\n```"], ""],
  ["call:patch\n```\n```", ["patch "], ""],
  ["call:patch\n```\nnever closed\ncall:a", ["patch", "a"], "```\nnever closed"],
  ["call:patch x\n```\na\n```", ["patch x"], "```\na\n```"],
  ["call:patch\n\n```\na\n```", ["patch"], "```\na\n```"],
  ["call:a\n```\na\n```", ["a"], "```\na\n```"],
  // Plain text
  ["call:unknown {}", [], "call:unknown {}"],
  ["call:a.", [], "call:a."],
  ["call:ab", [], "call:ab"],
  ["call: a", [], "call: a"],
  ["Call:a", [], "Call:a"],
  ["to call:a in a sentence", [], "to call:a in a sentence"],
  ["{} call:a", [], "{} call:a"],
  ["call:a {oops}", [], "call:a {oops}"],
  ["call:a {oops}\ncall:b", ["b"], "call:a {oops}"],
  ["call:a {oops} call:b", [], "call:a {oops} call:b"],
  ["call:a {]\ncall:b", ["b"], "call:a {]"],
  ['call:a {"open\ncall:b', [], 'call:a {"open\ncall:b'],
  [`call:a ${'{"x":'.repeat(50)}1${"}".repeat(50)}`, [], `call:a ${'{"x":'.repeat(50)}1${"}".repeat(50)}`],
];

Deno.test("readDirectives() separates calls from text", () => {
  for (const [text, expected, rest] of cases) {
    const { directives, text: left } = readDirectives(text, { tools, maxCalls: 128 });
    const found = directives.map(({ tool, arguments: input }) =>
      input === undefined ? tool.name : `${tool.name} ${input}`
    );
    assertEquals([found, left], [expected, rest], text);
  }
});

Deno.test("readDirectives() leaves calls beyond the maximum as text", () => {
  const { directives, text } = readDirectives("call:a\ncall:b\ncall:a", { tools, maxCalls: 1 });
  assertEquals(directives.map(({ tool }) => tool.name), ["a"]);
  assertEquals(text, "call:b\ncall:a");
});

Deno.test("readDirectives() uses the first of two tools with one name", () => {
  const twins: CallableTool[] = [{ type: "function", name: "x", description: "1" }, { type: "custom", name: "x" }];
  assertEquals(readDirectives("call:x {}", { tools: twins, maxCalls: 1 }).directives, [
    { tool: { type: "function", name: "x", description: "1" }, arguments: "{}" },
  ]);
});

Deno.test("readDirectives() takes linear time", () => {
  const texts = ["call:a {\n", 'call:a {"\n', "call:a {x}\n", "call:a {} ", '{\\"', "call:a [\n", " \t", "call:"]
    .concat(
      ["call:patch\n```\n", "call:patch\n````x\n", 'call:patch {"input":"\n', 'call:patch {"input":"a"}\n'],
    );
  const begin = performance.now();
  for (const text of texts) readDirectives(`call:a {"${text.repeat(30_000)}`, { tools, maxCalls: 128 });
  for (const text of texts) readDirectives(text.repeat(30_000), { tools, maxCalls: 128 });
  assertLess(performance.now() - begin, 60_000);
});
