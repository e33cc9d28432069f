import { assertEquals } from "@std/assert";
import { isObject, type Json, type JsonObject } from "../../../lib/json/mod.ts";
import { chat } from "../../../lib/protocols/chat/mod.ts";
import type { Codec, ResponseContext } from "../../../lib/protocols/codec.ts";
import { checkBody } from "../../../lib/protocols/fields.ts";
import { messages } from "../../../lib/protocols/messages/mod.ts";
import { messagesUpstream } from "../../../lib/protocols/messages/upstream.ts";
import { responses } from "../../../lib/protocols/responses/mod.ts";
import { accumulate as accumulateMessage } from "./accumulate.ts";
import { framesOf, ORIGIN } from "./upstream_answers.ts";
import { targetOf } from "./upstream_targets.ts";
import { writeAdapted } from "../translate/targets.ts";

/** Each protocol's client: its first request, and the next one built from an answer. */
const CLIENTS: readonly { codec: Codec; ask: JsonObject; next(answer: JsonObject): JsonObject }[] = [
  {
    codec: chat,
    ask: { model: "a/b", messages: [{ role: "user", content: "Hi" }], reasoning_effort: "low" },
    next: (answer) => ({
      model: "a/b",
      messages: [{ role: "user", content: "Hi" }, object(list(answer.choices)[0]).message ?? null],
    }),
  },
  {
    codec: responses,
    ask: {
      model: "a/b",
      input: "Hi",
      reasoning: { effort: "low", summary: "auto" },
      include: ["reasoning.encrypted_content"],
    },
    next: (answer) => ({ model: "a/b", input: [{ role: "user", content: "Hi" }, ...list(answer.output)] }),
  },
  {
    codec: messages,
    ask: {
      model: "a/b",
      max_tokens: 9,
      messages: [{ role: "user", content: "Hi" }],
      thinking: { type: "adaptive", display: "summarized" },
    },
    next: (answer) => ({
      model: "a/b",
      max_tokens: 9,
      messages: [{ role: "user", content: "Hi" }, { role: "assistant", content: answer.content }],
    }),
  },
];

for (const { codec, ask, next } of CLIENTS) {
  Deno.test(`thinking returns through clients of ${codec.protocol} as the vendor sent it`, async () => {
    for (const name of ["thinking", "hidden_thinking", "two_signatures"]) {
      const sent = accumulateMessage(await framesOf(name));
      checkBody(codec.schema, ask);
      const context: ResponseContext = {
        requestId: "r1",
        createdAt: 1,
        model: "a/b",
        request: ask,
        prompt: codec.readPrompt(ask),
      };
      const answer = codec.writeReply(messagesUpstream.readReply(sent, ORIGIN), context);
      const body = next(answer);
      checkBody(codec.schema, body);
      const written = writeAdapted(messagesUpstream, codec.readPrompt(body), targetOf());
      const turn = object(list(written.messages)[1]);
      const content = typeof turn.content === "string" ? [{ type: "text", text: turn.content }] : turn.content;
      assertEquals<unknown>(content, sent.content, name);
    }
  });
}

function object(value: Json | undefined): JsonObject {
  if (!isObject(value)) throw new TypeError(`Expected an object, got ${JSON.stringify(value)}`);
  return value;
}

function list(value: Json | undefined): Json[] {
  if (!Array.isArray(value)) throw new TypeError(`Expected an array, got ${JSON.stringify(value)}`);
  return value;
}
