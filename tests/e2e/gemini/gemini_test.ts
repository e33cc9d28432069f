/** Gemini's protocol for clients, in a whole gateway: relayed, translated, refused, billed. */
import { assertEquals, assertMatch } from "@std/assert";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { model, oneModel, startGateway, type TestGateway, upstream } from "../../support/gateway.ts";
import { events, json, startUpstream } from "../../upstream/mod.ts";

const PATH = "/v1beta/models/acme/one:generateContent";
const STREAM = "/v1beta/models/acme/one:streamGenerateContent";
const BODY = '{"contents":[{"parts":[{"text":"Hello"}]}]}';

/** An answer with members that nothing reads. */
const ANSWER: JsonObject = {
  candidates: [{
    content: { parts: [{ text: "Hello there", thoughtSignature: "c2ln" }], role: "model" },
    finishReason: "STOP",
    index: 0,
    avgLogprobs: -0.1,
  }],
  usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 2, totalTokenCount: 9 },
  modelVersion: "real-one",
  responseId: "x",
};

const PIECES = [
  '{"candidates":[{"content":{"parts":[{"text":"Hello"}],"role":"model"},"index":0}],"modelVersion":"real-one"}',
  '{"candidates":[{"content":{"parts":[{"text":" there"}],"role":"model"},"finishReason":"STOP","index":0}],' +
  '"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":2,"totalTokenCount":9},"modelVersion":"real-one"}',
];
const WIRE = PIECES.map((data) => `data: ${data}\r\n\r\n`).join("");

/** Sends a body to a path with the first key. */
function post({ url, key }: TestGateway, path: string, body: string, headers: HeadersInit = {}): Promise<Response> {
  return fetch(url + path, {
    method: "POST",
    headers: { "x-goog-api-key": key.key, "content-type": "application/json", ...headers },
    body,
  });
}

async function lastEntry({ gateway, store }: TestGateway) {
  await gateway.backgroundTasks.done();
  return (await store.ledger.entries({ after: 0, limit: 100 })).at(-1);
}

Deno.test("a Gemini upstream gets the client's own text, and its answer comes back with the public model", async () => {
  await using server = startUpstream(() => json(ANSWER));
  await using gateway = startGateway(oneModel("gemini", server.url));
  const odd = '{ "contents" : [{"parts":[{"text":"caf\\u00e9","x":1.0}]}],\n"labels":{"user_id":"1"} ,"tomorrow":1e2 }';
  const response = await post(gateway, PATH, `{"provider":{"order":["one"]},${odd.slice(1)}`);
  assertEquals([response.status, response.headers.get("x-sluice-model")], [200, "acme/one"]);
  assertEquals(await response.json(), { ...ANSWER, modelVersion: "acme/one" });
  const [request] = server.requests;
  assertEquals([request?.path, request?.body], ["/v1/models/real-one:generateContent", odd]);
  const entry = await lastEntry(gateway);
  assertEquals([entry?.endpoint, entry?.tokens], ["gemini", entry && { ...entry.tokens, prompt: 7, completion: 2 }]);
});

Deno.test("a relayed stream has the upstream's pieces, and the cost with its last one", async () => {
  await using server = startUpstream(() => events(WIRE));
  await using gateway = startGateway(oneModel("gemini", server.url));
  const expected = PIECES.map((piece) => JSON.parse(piece.replace("real-one", "acme/one")));
  Object.assign(expected[1], { sluice_cost: "0" });
  const sse = await (await post(gateway, `${STREAM}?alt=sse`, BODY)).text();
  assertEquals(sse.split("\n\n").filter((event) => event !== "").map((event) => JSON.parse(event.slice(6))), expected);
  const array = await post(gateway, STREAM, BODY);
  assertEquals(array.headers.get("content-type"), "application/json; charset=utf-8");
  assertEquals(await array.json(), expected);
  assertEquals(server.requests.map(({ path }) => path.split(":")[1]), Array(2).fill("streamGenerateContent?alt=sse"));
});

Deno.test("members in snake case are read, checked and passed on", async () => {
  await using server = startUpstream(() => json(ANSWER));
  await using gateway = startGateway(oneModel("gemini", server.url));
  const parameters = {
    type: "OBJECT",
    properties: { time_zone: { type: "STRING" } },
    property_ordering: ["time_zone"],
  };
  const body = {
    system_instruction: { parts: [{ text: "Be brief." }] },
    contents: [{ parts: [{ inline_data: { mime_type: "image/png", data: "AAAA" } }] }],
    tools: [{ function_declarations: [{ name: "now", parameters }] }],
    generation_config: { max_output_tokens: 5, thinking_config: { thinking_budget: 0 } },
  };
  const response = await post(gateway, PATH, JSON.stringify(body));
  assertEquals(response.status, 200);
  await response.body?.cancel();
  assertEquals(server.requests[0]?.json, {
    systemInstruction: body.system_instruction,
    contents: [{ parts: [{ inlineData: { mimeType: "image/png", data: "AAAA" } }] }],
    tools: [{
      functionDeclarations: [{
        name: "now",
        parameters: { type: "OBJECT", properties: { time_zone: { type: "STRING" } }, propertyOrdering: ["time_zone"] },
      }],
    }],
    generationConfig: { maxOutputTokens: 5, thinkingConfig: { thinkingBudget: 0 } },
  });
  const both = await post(gateway, PATH, `{"cachedContent":"a","cached_content":"b",${BODY.slice(1)}`);
  assertEquals([both.status, (await both.json()).error.status], [400, "INVALID_ARGUMENT"]);
});

Deno.test("a list of one may be its item, and a system instruction may have any role, as at Google", async () => {
  await using server = startUpstream(() => json(ANSWER));
  await using gateway = startGateway(oneModel("gemini", server.url));
  const part = { text: "Hi" };
  const tool = { name: "now", parametersJsonSchema: { type: "object", properties: { parts: { type: "object" } } } };
  const body = {
    system_instruction: { role: "system", parts: part },
    contents: { role: "user", parts: part },
    tools: { functionDeclarations: tool },
    safetySettings: { category: "HARM_CATEGORY_HARASSMENT", threshold: "BLOCK_NONE" },
  };
  const expected = {
    systemInstruction: { role: "system", parts: [part] },
    contents: [{ role: "user", parts: [part] }],
    tools: [{ functionDeclarations: [tool] }],
    safetySettings: [body.safetySettings],
  };
  const answered = await post(gateway, PATH, JSON.stringify(body));
  assertEquals([answered.status, server.requests[0]?.json], [200, expected], await answered.text());
  const counted = await post(gateway, PATH.replace("generateContent", "countTokens"), JSON.stringify(body));
  assertEquals(counted.status, 200, await counted.text());
});

Deno.test("hosted tools, files and stored contents need permission, in any spelling", async () => {
  await using server = startUpstream(() => json(ANSWER));
  await using gateway = startGateway({ ...oneModel("gemini", server.url), groups: { default: {}, rich: RICH } });
  const tools = { ...JSON.parse(BODY), tools: [{ google_search: {}, function_declarations: [{ name: "f" }] }] };
  const dropped = await post(gateway, PATH, JSON.stringify(tools));
  assertEquals([dropped.status, dropped.headers.get("x-sluice-dropped")], [200, "tools.googleSearch"]);
  await dropped.body?.cancel();
  assertEquals(server.requests[0]?.json.tools, [{ functionDeclarations: [{ name: "f" }] }]);
  const file = {
    fileData: { mimeType: "image/png", fileUri: "https://generativelanguage.googleapis.com/v1beta/files/x" },
  };
  const refused: JsonObject[] = [
    { cached_content: "cachedContents/x" },
    { contents: [{ parts: [file] }] },
    { tools: [{ fileSearch: { fileSearchStoreNames: ["fileSearchStores/x"] } }] },
  ];
  for (const members of refused) {
    const response = await post(gateway, PATH, JSON.stringify({ ...JSON.parse(BODY), ...members }));
    assertEquals(response.status, 400, JSON.stringify(members));
    await response.body?.cancel();
  }
  assertEquals(server.requests.length, 1);
  const { key } = await gateway.addKey({ group: "rich" });
  const allowed = await post(gateway, PATH, JSON.stringify(tools), { "x-goog-api-key": key });
  assertEquals([allowed.status, allowed.headers.get("x-sluice-dropped")], [200, null]);
  await allowed.body?.cancel();
  assertEquals(server.requests[1]?.json.tools, [{ googleSearch: {}, functionDeclarations: [{ name: "f" }] }]);
});

const RICH = { hosted_tools: ["web_search"] };

Deno.test("another method is 404 with the methods there are, or with the endpoint for embeddings", async () => {
  await using gateway = startGateway(oneModel("gemini", "http://127.0.0.1:9"));
  const methods = "expected generateContent, streamGenerateContent or countTokens";
  const embeddings = "use POST /v1/embeddings for embeddings";
  for (
    const [method, hint] of [["predict", methods], ["embedContent", embeddings], ["batchEmbedContents", embeddings]]
  ) {
    const response = await post(gateway, PATH.replace("generateContent", `${method}`), BODY);
    const { error } = await response.json();
    assertEquals([response.status, error.message], [404, `Cannot call the method "${method}": ${hint}`]);
  }
});

Deno.test("an exhausted budget has the reason at which Gemini CLI gives up, and no detail that replaces the text", async () => {
  await using server = startUpstream(() => json(ANSWER));
  await using gateway = startGateway({
    upstreams: { one: upstream("gemini", server.url) },
    models: [
      model("acme/one", [{ upstream: "one", model: "real-one" }], { pricing: { prompt: "1", completion: "1" } }),
    ],
    groups: { default: { key_budget: { usd: "0.001", period: "month" } } },
  });
  const response = await post(gateway, PATH, BODY);
  const { error } = await response.json();
  assertEquals([response.status, error.status], [429, "RESOURCE_EXHAUSTED"]);
  assertMatch(error.message, /^Cannot pay for this request/);
  assertEquals(error.details, [{
    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
    reason: "INSUFFICIENT_G1_CREDITS_BALANCE",
    domain: "sluice",
    metadata: { code: "insufficient_quota" },
  }]);
});
