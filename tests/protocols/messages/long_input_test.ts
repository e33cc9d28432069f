import { assertEquals } from "@std/assert";
import { isObject, type Json, type JsonObject, parseJson } from "../../../lib/json/mod.ts";
import { messages, readCountPrompt, writeInputs } from "../../../lib/protocols/messages/mod.ts";

const LONG = "x".repeat(100_000);

/** Inputs of calls, as they are written in a body. */
const INPUTS: readonly string[] = [
  "{}",
  '{"a":1}',
  ` { "a" : "${LONG}" , "b" : [ 1.0, -0, 1e400, 12345678901234567890 ] } `,
  `{"a":"${'\\"\\u0001\\ud800'.repeat(30_000)}"}`,
  `{"__proto__":{"a":"${LONG}"},"10":1,"9":2}`,
  `{${Array.from({ length: 9_000 }, (_, at) => `"k${at}":${at}`).join(",")}}`,
];

function bodyOf(content: string): JsonObject {
  const body = parseJson(
    `{"model":"a/b","max_tokens":9,"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":${content}}]}`,
  );
  if (!isObject(body)) throw new TypeError("Expected an object");
  return body;
}

const toolUse = (input: string) => `{"type":"tool_use","id":"c","name":"f","input":${input}}`;

function argumentsIn(body: JsonObject, texts?: ReadonlyMap<JsonObject, string>): string[] {
  return messages.readPrompt(body, texts).messages.flatMap(({ blocks }) =>
    blocks.flatMap((block) => block.type === "tool_call" ? [block.arguments] : [])
  );
}

Deno.test("inputs written in advance are read like others", async () => {
  const body = bodyOf(`[{"type":"text","text":"Well"},${INPUTS.map(toolUse).join(",")}]`);
  const texts = await writeInputs(body);
  assertEquals(texts.size, INPUTS.length);
  assertEquals(argumentsIn(body, texts), argumentsIn(body));
  assertEquals([...texts.values()], argumentsIn(body));
  assertEquals(messages.readPrompt(body, texts), messages.readPrompt(body));
  assertEquals(readCountPrompt(body, texts), readCountPrompt(body));
});

Deno.test("an input written in advance is not written again", async () => {
  const body = bodyOf(`[${toolUse("{}")},${toolUse('{"a":1}')}]`);
  const texts = new Map([...(await writeInputs(body)).keys()].slice(0, 1).map((input) => [input, "said before"]));
  assertEquals(argumentsIn(body, texts), ["said before", '{"a":1}']);
});

Deno.test("only inputs of calls are written in advance", async () => {
  const contents = ['"words"', "[]", '[{"type":"text","text":"a","input":{}}]', `[${toolUse("1.0")},1.0,null]`];
  for (const content of contents) assertEquals((await writeInputs(bodyOf(content))).size, 0, content);
  const bodies: Json[] = [null, "words", [1, null, "a"]];
  for (const value of bodies) assertEquals((await writeInputs({ messages: value })).size, 0);
});
