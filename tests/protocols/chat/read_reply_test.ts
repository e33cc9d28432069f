import { assertEquals } from "@std/assert";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { readReply } from "../../../lib/protocols/chat/read_reply.ts";

const ORIGIN = { issuer: "one" };

/** A whole answer with one message. */
function answer(message: JsonObject, choice: JsonObject = {}, more: JsonObject = {}): JsonObject {
  return {
    id: "chatcmpl-1",
    object: "chat.completion",
    choices: [{ index: 0, message: { role: "assistant", ...message }, finish_reason: "stop", ...choice }],
    usage: { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 },
    ...more,
  };
}

/** Empty members, except for the last: with that one, the members are read in the general way. */
const EMPTY = { refusal: null, annotations: [], tool_calls: null, audio: null, reasoning_content: null };
const UNKNOWN = { ...EMPTY, vendors_own: true };

const BODIES: Record<string, (message: JsonObject) => JsonObject> = {
  "ended": (message) => answer(message),
  "cut": (message) => answer(message, { finish_reason: "length" }),
  "said to have called a tool": (message) => answer(message, { finish_reason: "tool_calls" }),
  "filtered": (message) => answer(message, { finish_reason: "content_filter" }),
  "ended by a stop sequence": (message) => answer(message, { matched_stop: "END." }),
  "ended without a reason": (message) => answer(message, { finish_reason: null }),
  "without id and usage": (message) => answer(message, {}, { id: null, usage: null }),
  "whose usage is in its choice": (message) => answer(message, { usage: { completion_tokens: 3 } }, { usage: null }),
};

for (const [name, body] of Object.entries(BODIES)) {
  Deno.test(`readReply() reads a message of one text like any other: ${name}`, () => {
    for (const content of ["Hello", " Hello\n", "𝄞".repeat(40), "", " \n", null]) {
      const plain = readReply(body({ ...EMPTY, content }), ORIGIN);
      assertEquals(plain, readReply(body({ ...UNKNOWN, content }), ORIGIN));
      assertEquals(plain.blocks, content?.trim() ? [{ type: "text", text: content }] : []);
    }
  });
}

Deno.test("readReply() keeps the citations of a text beside a call", () => {
  const value = { type: "url_citation", url_citation: { url: "u", title: "t", start_index: 0, end_index: 2 } };
  const tool_calls = [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }];
  const { blocks } = readReply(answer({ content: "Hi", annotations: [value], tool_calls }), ORIGIN);
  assertEquals(blocks[0], { type: "text", text: "Hi", citations: [{ from: "chat", value }] });
});

Deno.test("readReply() keeps calls with the same id apart", () => {
  const call = (input: string) => ({ id: "c", type: "function", function: { name: "f", arguments: input } });
  const { blocks } = readReply(answer({ tool_calls: [call('{"a":1}'), call('{"b":2}')] }), ORIGIN);
  assertEquals(blocks.map((block) => block.type === "tool_call" && [block.id, block.arguments]), [
    ["c", '{"a":1}'],
    ["c_1", '{"b":2}'],
  ]);
});
