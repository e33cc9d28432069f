import { assertEquals } from "@std/assert";
import type { Protocol } from "../../../lib/protocols/canonical/types.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { model, startGateway, upstream } from "../../support/gateway.ts";
import { prompt, WHOLE } from "../../upstream/replies.ts";
import { json, startUpstream } from "../../upstream/mod.ts";

Deno.test("dropped parameters are named as the client wrote them", async () => {
  await using server = startUpstream(({ path }) => json(path.includes("generateContent") ? GEMINI : WHOLE.chat));
  await using gateway = startGateway({
    upstreams: {
      mistral: upstream("mistral", server.url),
      gemini: { ...upstream("gemini", server.url), base_url: `${server.url}/v1beta` },
    },
    models: [
      model("acme/mistral", [{ upstream: "mistral", model: "real" }]),
      model("acme/gemini", [{ upstream: "gemini", model: "real" }]),
    ],
  });
  const cases: [Protocol, target: string, JsonObject, named: string][] = [
    ["responses", "acme/mistral", { safety_identifier: "u" }, "safety_identifier"],
    ["responses", "acme/mistral", { user: "u" }, "user"],
    ["responses", "acme/gemini", { safety_identifier: "u" }, "safety_identifier"],
    ["responses", "acme/gemini", { include: ["message.output_text.logprobs"] }, "include"],
    ["chat", "acme/mistral", { safety_identifier: "u" }, "safety_identifier"],
    ["chat", "acme/mistral", { safety_identifier: "u", user: "v" }, "user, safety_identifier"],
    ["chat", "acme/gemini", { safety_identifier: "u", user: "v" }, "user, safety_identifier"],
    ["chat", "acme/gemini", { user: "v" }, "user"],
    ["messages", "acme/mistral", { metadata: { user_id: "u" } }, "metadata.user_id"],
    ["messages", "acme/gemini", { metadata: { user_id: "u" } }, "metadata.user_id"],
  ];
  for (const [protocol, target, more, named] of cases) {
    const response = await gateway.ask(protocol, prompt(protocol, { model: target, ...more }));
    const about = `${protocol} to ${target}: ${JSON.stringify(more)}`;
    assertEquals([response.status, response.headers.get("x-sluice-dropped")], [200, named], about);
    await response.body?.cancel();
  }
});

/** A whole answer of Gemini's. */
const GEMINI = {
  candidates: [{ content: { role: "model", parts: [{ text: "Hello" }] }, finishReason: "STOP" }],
  usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 1, totalTokenCount: 8 },
};
