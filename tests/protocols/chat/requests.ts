/** Requests that the tests of the chat protocol share. */
import type { JsonObject } from "../../../lib/json/mod.ts";
import type { Echo } from "../../../lib/protocols/codec.ts";
import { chat } from "../../../lib/protocols/chat/mod.ts";

/** A request with nothing but what is required, and the members given. */
export function request(members: JsonObject = {}): JsonObject {
  return { model: "acme/thinker", messages: [{ role: "user", content: "Hi" }], ...members };
}

/** A request whose only turn beside the user's is an assistant's. */
export function assistantRequest(message: JsonObject): JsonObject {
  return request({ messages: [{ role: "user", content: "Hi" }, { role: "assistant", content: null, ...message }] });
}

/** What an answer to a request repeats of it. */
export function echoOf(body: JsonObject): Echo {
  return {
    requestId: "r1",
    createdAt: 1_790_000_000,
    model: "acme/thinker",
    request: body,
    prompt: chat.readPrompt(body),
  };
}
