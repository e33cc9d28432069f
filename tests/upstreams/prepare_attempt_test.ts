import { assertEquals, assertLess } from "@std/assert";
import { type JsonObject, scanMembers } from "../../lib/json/mod.ts";
import { UnsupportedParameters } from "../../lib/protocols/canonical/unsupported_parameters.ts";
import { writeSignature } from "../../lib/protocols/canonical/signature.ts";
import { messages } from "../../lib/protocols/messages/mod.ts";
import { createAttemptMaker } from "../../lib/upstreams/prepare_attempt.ts";
import { VENDORS } from "../../lib/upstreams/vendors.ts";
import { responseContextOf, rowOf } from "../golden/crossings.ts";

const THOUGHTS = 1_000;

/** A conversation with signed thoughts. */
function thoughtful(signatureOf: (index: number) => string): JsonObject {
  const thoughts = Array.from({ length: THOUGHTS }, (_, index) => ({
    type: "thinking",
    thinking: "t",
    signature: signatureOf(index),
  }));
  return {
    model: "acme/thinker",
    max_tokens: 16,
    messages: [
      { role: "user", content: "x" },
      { role: "assistant", content: [...thoughts, { type: "text", text: "y" }] },
      { role: "user", content: "z" },
    ],
  };
}

/** The body for an upstream, and how often the client's text was read for it. */
async function prepared(request: JsonObject): Promise<{ body: string; reads: number }> {
  const { prepare } = createAttemptMaker({
    name: "main",
    vendor: VENDORS.anthropic,
    protocols: ["messages"],
    quirk: {},
    issuers: new Set(["anthropic"]),
  }, undefined);
  const prompt = messages.readPrompt(request);
  const { text, members } = scanMembers(JSON.stringify(request));
  let reads = 0;
  const { body } = await prepare({
    prompt,
    client: {
      responseContext: { ...responseContextOf("messages", request), prompt, request },
      body: {
        get text() {
          reads++;
          return text;
        },
        members,
      },
      header: () => null,
    },
    model: rowOf("acme/thinker"),
    target: { upstream: "main", model: "model-x", priority: 0, weight: 1 },
    countInput: () => Promise.resolve(1),
    signal: new AbortController().signal,
    dropped: new UnsupportedParameters(),
  });
  return { body: String(body), reads };
}

Deno.test("a prompt with many own signatures is relayed without a search of the body for each", async () => {
  const { body, reads } = await prepared(thoughtful((index) => `signature ${index}`));
  assertEquals(JSON.parse(body).messages[1].content.length, THOUGHTS + 1);
  assertLess(reads, 10);
});

Deno.test("a prompt with an own signature in an envelope is translated", async () => {
  const own = { issuer: "anthropic", value: "sluice1.x" };
  const enveloped = writeSignature(own, "anthropic");
  const { body } = await prepared(thoughtful((index) => index === THOUGHTS - 1 ? enveloped : `signature ${index}`));
  assertEquals(JSON.parse(body).messages[1].content[THOUGHTS - 1].signature, "sluice1.x");
});
