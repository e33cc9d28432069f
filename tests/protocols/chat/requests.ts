/** Requests that the tests of the chat protocol share. */
import type { JsonObject } from "../../../lib/json/mod.ts";
import type { ResponseContext } from "../../../lib/protocols/codec.ts";
import { chat } from "../../../lib/protocols/chat/mod.ts";

/** A request with the required members and these. */
export function request(members: JsonObject = {}): JsonObject {
  return { model: "acme/thinker", messages: [{ role: "user", content: "Hi" }], ...members };
}

/** A request with one assistant turn beside the user's. */
export function assistantRequest(message: JsonObject): JsonObject {
  return request({ messages: [{ role: "user", content: "Hi" }, { role: "assistant", content: null, ...message }] });
}

/** The members of a request that its answer repeats. */
export function responseContextOf(body: JsonObject): ResponseContext {
  return {
    requestId: "r1",
    createdAt: 1_790_000_000,
    model: "acme/thinker",
    request: body,
    prompt: chat.readPrompt(body),
  };
}
