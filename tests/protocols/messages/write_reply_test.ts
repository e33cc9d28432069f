import { assertEquals, assertStringIncludes } from "@std/assert";
import { type JsonObject, parseJson, writeJson } from "../../../lib/json/mod.ts";
import { messages } from "../../../lib/protocols/messages/mod.ts";
import { expectedMessage, REPLIES, responseContextOf } from "./replies.ts";

Deno.test("writeReply() writes every kind of answer", () => {
  for (const one of REPLIES) {
    assertEquals(messages.writeReply(one.reply, responseContextOf(one.prompt)), expectedMessage(one), one.name);
  }
});

Deno.test("writeReply() keeps the digits of tool arguments", () => {
  const call = { type: "tool_call" as const, id: "c", name: "f", arguments: '{"id":9007199254740993,"x":1.0}' };
  const written = writeJson(
    messages.writeReply({ blocks: [call], finish: "tool_use", usage: {} }, responseContextOf()),
  );
  assertStringIncludes(written, `"input":${call.arguments}`);
});

Deno.test("writeReply() puts arguments that are not an object under _raw", () => {
  for (const text of ['{"a":', "[1]", "7", '"x"', "null", "1e400"]) {
    const call = { type: "tool_call" as const, id: "c", name: "f", arguments: text };
    const { content } = messages.writeReply({ blocks: [call], finish: "length", usage: {} }, responseContextOf());
    assertEquals(content, [{ type: "tool_use", id: "c", name: "f", input: { _raw: text } }]);
  }
});

Deno.test("readPrompt() reverses writeReply()", () => {
  for (const one of REPLIES.filter(({ content }) => content.length > 0)) {
    const message = messages.writeReply(one.reply, responseContextOf());
    const body: JsonObject = {
      model: "a/b",
      max_tokens: 1,
      messages: [{ role: "assistant", content: message.content ?? null }],
    };
    const [turn] = messages.readPrompt(parseObject(writeJson(body))).messages;
    const again = messages.writeReply({ ...one.reply, blocks: turn?.blocks ?? [] }, responseContextOf());
    assertEquals(writeJson(again.content ?? null), writeJson(message.content ?? null), one.name);
  }
});

function parseObject(text: string): JsonObject {
  const value = parseJson(text);
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new TypeError("Expected an object");
  return value;
}
