import { assertEquals, assertLess } from "@std/assert";
import type { Prompt } from "../../../lib/protocols/canonical/types.ts";
import { isObject, type JsonObject, parseJson } from "../../../lib/json/mod.ts";
import { messages } from "../../../lib/protocols/messages/mod.ts";
import { readSteps } from "../../../lib/protocols/messages/read_prompt.ts";

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

function argumentsIn({ messages }: Prompt): string[] {
  return messages.flatMap(({ blocks }) =>
    blocks.flatMap((block) => block.type === "tool_call" ? [block.arguments] : [])
  );
}

Deno.test("long inputs of calls are written in steps, and like others", () => {
  const body = bodyOf(`[{"type":"text","text":"Well"},${INPUTS.map(toolUse).join(",")}]`);
  let steps = 0;
  const work = readSteps(body);
  let step = work.next();
  for (; step.done !== true; step = work.next()) steps++;
  assertLess(INPUTS.length, steps);
  assertEquals(argumentsIn(step.value).length, INPUTS.length);
  assertEquals(step.value, messages.readPrompt(body));
});
