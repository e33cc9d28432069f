import { assertEquals, assertStringIncludes } from "@std/assert";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { oneModel, startGateway } from "../../support/gateway.ts";
import { json, startUpstream } from "../../upstream/mod.ts";

/** A whole answer of Gemini's. */
const ANSWER = {
  candidates: [{ content: { role: "model", parts: [{ text: "Hello" }] }, finishReason: "STOP" }],
  usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 1, totalTokenCount: 8 },
};

const FILE = { fileData: { fileUri: "https://generativelanguage.googleapis.com/v1beta/files/1" } };
const IMAGE = { inlineData: { mimeType: "image/png", data: "aaaa" } };
const CALL = { functionCall: { name: "f", args: {} } };
const RESULT = { functionResponse: { name: "f", response: {} } };
const USER = { role: "user", parts: [{ text: "Hello" }] };

/** A conversation with a part of the model. */
function byModel(part: JsonObject): JsonObject[] {
  return [USER, { role: "model", parts: [part] }, USER];
}

/** A conversation with a part of the user. */
function byUser(part: JsonObject): JsonObject[] {
  return [USER, { role: "model", parts: [CALL] }, { role: "user", parts: [part] }];
}

Deno.test("a relayed part of Gemini's protocol hides no file of the vendor and no other content", async () => {
  await using server = startUpstream(() => json(ANSWER));
  await using gateway = startGateway(oneModel("gemini", server.url));
  const cases: [about: string, contents: JsonObject[], words: string][] = [
    ["a thought with a file", byModel({ thought: true, ...FILE }), "Cannot use this address"],
    ["a call with a file", byModel({ ...CALL, ...FILE }), "Cannot use both fileData and functionCall in one part"],
    ["a result with a file", byUser({ ...RESULT, ...FILE }), "Cannot use both fileData and functionResponse"],
    ["an image with a file", byUser({ ...IMAGE, ...FILE }), "Cannot use both inlineData and fileData"],
    ["an image with a text", byUser({ ...IMAGE, text: "Look" }), "Cannot use both text and inlineData"],
    [
      "media of a result with a file",
      byUser({ functionResponse: { name: "f", parts: [{ ...IMAGE, ...FILE }] } }),
      "Cannot use both inlineData and fileData",
    ],
  ];
  for (const [about, contents, words] of cases) {
    const response = await gateway.ask("gemini", { model: "acme/one", contents });
    assertStringIncludes(await response.text(), words, about);
    assertEquals(response.status, 400, about);
  }
  assertEquals(server.requests.length, 0);
});

Deno.test("images among the thoughts of Gemini's models go back to it", async () => {
  await using server = startUpstream(() => json(ANSWER));
  await using gateway = startGateway(oneModel("gemini", server.url));
  const contents = byModel({ thought: true, ...IMAGE });
  const response = await gateway.ask("gemini", { model: "acme/one", contents });
  assertEquals(response.status, 200, await response.text());
  assertEquals(server.requests[0]?.json.contents, contents);
});

Deno.test("a request of Gemini's protocol cannot have another model answer", async () => {
  await using server = startUpstream(() => json(ANSWER));
  await using gateway = startGateway(oneModel("gemini", server.url));
  for (const name of ["routingConfig", "routing_config", "modelSelectionConfig"]) {
    const generationConfig = { [name]: { manualMode: { modelName: "dear" } } };
    const response = await gateway.ask("gemini", { model: "acme/one", contents: [USER], generationConfig });
    assertStringIncludes(await response.text(), "another model could answer", name);
    assertEquals(response.status, 400, name);
  }
  assertEquals(server.requests.length, 0);
});

Deno.test("Gemini's protocol returns text only, as the prices of a text model are those of text", async () => {
  await using server = startUpstream(() => json(ANSWER));
  await using gateway = startGateway(oneModel("gemini", server.url));
  const cases: [generationConfig: JsonObject, words: string | undefined][] = [
    [{ responseModalities: ["TEXT", "IMAGE"] }, "Cannot answer with image"],
    [{ response_modalities: ["audio"], speechConfig: {} }, "Cannot answer with audio"],
    [{ responseModalities: [2] }, "Expected a string"],
    [{ responseModalities: ["Text", "MODALITY_UNSPECIFIED"] }, undefined],
    [{ responseModalities: [] }, undefined],
  ];
  for (const [generationConfig, words] of cases) {
    const response = await gateway.ask("gemini", { model: "acme/one", contents: [USER], generationConfig });
    assertStringIncludes(await response.text(), words ?? "Hello");
    assertEquals(response.status, words === undefined ? 200 : 400);
  }
});

Deno.test("the schema of a function's result is held for, and goes to Google", async () => {
  await using server = startUpstream(() => json(ANSWER));
  const config = oneModel("gemini", server.url);
  const [row] = config.models as JsonObject[];
  await using gateway = startGateway({
    ...config,
    models: [{ ...row, pricing: { prompt: "0.00001", completion: "0" } }],
  });
  const key = await gateway.addKey({ rules: { budget: { usd: "0.2", period: "total" } } });
  const ask = (declaration: JsonObject) =>
    gateway.ask("gemini", {
      model: "acme/one",
      contents: [USER],
      tools: [{ functionDeclarations: [{ name: "f", ...declaration }] }],
    }, { key });
  const long = { type: "OBJECT", description: "word ".repeat(10_000) };
  for (const name of ["response", "responseJsonSchema"]) {
    const response = await ask({ [name]: long });
    assertEquals(response.status, 429, `${name}: ${await response.text()}`);
  }
  const short = { name: "f", response: { type: "OBJECT" } };
  const response = await ask(short);
  assertEquals(response.status, 200, await response.text());
  assertEquals(server.requests.at(-1)?.json.tools, [{ functionDeclarations: [short] }]);
  const two = await ask({ parameters: { type: "OBJECT" }, parametersJsonSchema: { type: "object" } });
  assertStringIncludes(await two.text(), "Cannot use both parameters and parametersJsonSchema");
  assertEquals(two.status, 400);
});
